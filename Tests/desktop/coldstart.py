"""Measures the cold start: from main() to the first home screen that is drawn, and the library's share.

Usage: coldstart.py [STARTS]. Prints the median and the least of the starts. No test depends on it.
"""

from __future__ import annotations

import pathlib
import re
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests/server"), str(ROOT / "examples/desktop/panel")]

from local_supabase import LocalSupabase  # noqa: E402

from desk import App, Desk  # noqa: E402

LINE = re.compile(r"home drawn after (\d+) us, (\d+) us of it in the library")


def main() -> None:
    """Sign in once, then start again and again."""
    starts = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as home, LocalSupabase(demo=True) as backend:
        desk = Desk(pathlib.Path(home))
        app = App(desk, backend, pathlib.Path(home) / "app", G_MESSAGES_DEBUG="holdfast-desktop")
        try:
            app.start()
            app.sign_in()
            app.see("You this year")
            app.quit()
            seen = []
            for _ in range(starts):
                app.console.write_text("")
                app.start()
                app.wait(lambda: LINE.search(app.console.read_text()), "home is not drawn")
                found = LINE.search(app.console.read_text())
                assert found is not None
                seen.append((int(found[1]), int(found[2])))
                app.quit()
        finally:
            app.close()
            desk.close()
    for name, values in zip(
        ("to a drawn home", "in the library"), zip(*seen, strict=True), strict=True
    ):
        print(
            f"{name}: median {statistics.median(values) / 1000:.1f} ms, least {min(values) / 1000:.1f} ms"
        )


if __name__ == "__main__":
    main()
