"""Starts the app on a local backend, with a panel beside it that plays the world around the app.

Usage: panel.py PROGRAM. Needs Debian's Python with GTK (python3-gi, gir1.2-adw-1).
"""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable

import gi

gi.require_version("Adw", "1")
gi.require_version("Gtk", "4.0")
from gi.repository import Adw, Gio, GLib, Gtk  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "Tests/server"))
from local_supabase import demo  # noqa: E402
from local_supabase.launcher import LocalSupabase  # noqa: E402
from stage import Stage  # noqa: E402

HOUR_MS = 3_600_000


class Panel(Adw.Application):
    """One window: a switch for the network, and a button for everything that can go wrong."""

    def __init__(self, program: str, backend: LocalSupabase, folder: pathlib.Path) -> None:
        super().__init__(application_id="org.holdfast.Panel", flags=Gio.ApplicationFlags.NON_UNIQUE)
        self.backend, self.control = backend, backend.control
        self.stage = Stage(folder / "stage", folder / "reader")
        self.program = program
        self.environment = {
            **os.environ,
            "HOLDFAST_URL": backend.url,
            "HOLDFAST_KEY": backend.anon_key,
            "HOLDFAST_STAGE": self.stage.path,
            "HOLDFAST_DATA": str(folder / "app"),
        }
        self.app: subprocess.Popen[bytes] | None = None

    def do_activate(self) -> None:
        """Show the panel, and start the app beside it."""
        page = Adw.PreferencesPage()
        self._add_people(page)
        self._add_network(page)
        self._add_organisation(page)
        self._add_finger(page)
        self._add_time(page)
        self._add_app(page)
        box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
        self.toasts = Adw.ToastOverlay(child=page)
        self.toasts.set_vexpand(True)
        box.append(Adw.HeaderBar())
        box.append(self.toasts)
        window = Adw.ApplicationWindow(application=self, content=box, title="Around the app")
        window.set_default_size(380, 820)
        window.present()
        self._start_app()

    # Rows -----------------------------------------------------------------------------------------

    def _group(self, page: Adw.PreferencesPage, title: str, text: str = "") -> Adw.PreferencesGroup:
        group = Adw.PreferencesGroup(title=title, description=text)
        page.add(group)
        return group

    def _button(
        self, group: Adw.PreferencesGroup, title: str, text: str, act: Callable[[], str]
    ) -> None:
        row = Adw.ActionRow(title=title, subtitle=text, activatable=True)
        row.add_suffix(Gtk.Image.new_from_icon_name("media-playback-start-symbolic"))
        row.connect("activated", lambda _: self._say(act()))
        group.add(row)

    def _say(self, text: str) -> None:
        self.toasts.add_toast(Adw.Toast(title=text, timeout=3))

    def _add_people(self, page: Adw.PreferencesPage) -> None:
        text = "\n".join(demo.USERS) + f"\nEverybody's password: {demo.PASSWORD}"
        self._group(page, "People", text)

    def _add_network(self, page: Adw.PreferencesPage) -> None:
        group = self._group(page, "Network and server")
        row = Adw.ActionRow(title="Network", subtitle="Off: the app is told, and nothing passes")
        switch = Gtk.Switch(active=True, valign=Gtk.Align.CENTER)
        switch.connect("notify::active", lambda it, _: self._network(it.get_active()))
        row.add_suffix(switch)
        row.set_activatable_widget(switch)
        group.add(row)
        self._button(
            group, "Lose the next answer", "Stored, but the app never hears of it", self._lose
        )
        self._button(group, "Token expired", "The next requests are refused: 401", self._expire)
        self._button(group, "End the session", "As a log-out on all devices does", self._end)

    def _add_organisation(self, page: Adw.PreferencesPage) -> None:
        group = self._group(page, "Organisation", "Of everybody who is a member there")
        for org, name in demo.ORGANIZATIONS.items():
            row = Adw.ExpanderRow(title=name)
            for title, act in (
                ("End the memberships", lambda org=org: self._membership(org, "ended")),
                ("Restore the memberships", lambda org=org: self._membership(org, "active")),
                ("Disable", lambda org=org: self._organisation(org, "disabled")),
                ("Enable", lambda org=org: self._organisation(org, "active")),
            ):
                inner = Adw.ActionRow(title=title, activatable=True)
                inner.connect("activated", lambda _, act=act: self._say(act()))
                row.add_row(inner)
            group.add(row)

    def _add_finger(self, page: Adw.PreferencesPage) -> None:
        group = self._group(
            page, "Fingerprint reader", "It keeps the key, and gives it for a finger"
        )
        self._button(group, "The right finger", "Releases the key", lambda: self._finger(True))
        self._button(group, "A wrong finger", "Releases nothing", lambda: self._finger(False))

    def _add_time(self, page: Adw.PreferencesPage) -> None:
        group = self._group(page, "Time")
        self._button(group, "An hour passes", "Of the app's clock", lambda: self._forward(1))
        self._button(group, "A day passes", "Of the app's clock", lambda: self._forward(24))
        self._button(
            group, "Away for ten minutes", "The app leaves the screen and comes back", self._away
        )

    def _add_app(self, page: Adw.PreferencesPage) -> None:
        group = self._group(page, "The app")
        self._button(group, "Kill it", "As a power cut does", self._kill)
        self._button(group, "Start it", "If it does not run", self._start_app)

    # What they do ---------------------------------------------------------------------------------

    def _network(self, online: bool) -> None:
        self.control.clear_faults()
        if not online:  # the server's side of it: whoever tries finds nothing
            for path in ("/rest", "/auth"):
                self.control.drop_before(path, times=-1)
        self.stage.set(online=online)

    def _lose(self) -> str:
        self.control.drop_after("/rest/v1/activities", method="POST")
        return "The next registration is stored, and its answer is lost"

    def _expire(self) -> str:
        body = {"code": "PGRST303", "message": "JWT expired", "details": None, "hint": None}
        self.control.respond("/rest/v1", 401, body=body, times=1)
        return "The next request is refused"

    def _end(self) -> str:
        for email in demo.USERS:
            self.control.revoke_sessions(email)
        return "The server knows no session any more"

    def _membership(self, org: str, status: str) -> str:
        for email, member_of, role in demo.MEMBERSHIPS:
            if member_of == org:
                self.control.set_membership(email, org, role=role, status=status)
        return f"Memberships: {status}"

    def _organisation(self, org: str, status: str) -> str:
        self.control.set_org(org, status)
        return f"Organisation: {status}"

    def _finger(self, accepted: bool) -> str:
        asked = self.stage.finger(accepted=accepted)
        return "The reader was asked" if asked else "Nobody asks for a finger now"

    def _forward(self, hours: int) -> str:
        self.stage.set(clock_ms=self.stage.clock_ms + hours * HOUR_MS)
        return "The app's clock is ahead"

    def _away(self) -> str:
        self.stage.set(front=False)
        self.stage.set(front=True, clock_ms=self.stage.clock_ms + HOUR_MS // 6)
        return "The app was away"

    def _kill(self) -> str:
        if self.app is not None:
            self.app.kill()
            self.app.wait()
        return "Killed"

    def _start_app(self) -> str:
        if self.app is not None and self.app.poll() is None:
            return "It runs"
        self.app = subprocess.Popen([self.program], env=self.environment)
        return "Started"

    def end(self) -> None:
        """End the app with the panel."""
        if self.app is not None and self.app.poll() is None:
            self.app.terminate()
            self.app.wait()
        self.stage.close()


def main() -> int:
    """Run until the panel is closed."""
    python = ROOT / ".venv/bin/python"
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-desktop-") as folder,
        LocalSupabase(demo=True, python=str(python)) as backend,
    ):
        panel = Panel(sys.argv[1], backend, pathlib.Path(folder))
        GLib.set_prgname("holdfast-panel")
        for number in (signal.SIGINT, signal.SIGTERM):
            GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, number, panel.quit)
        try:
            return int(panel.run([]))
        finally:
            panel.end()


if __name__ == "__main__":
    sys.exit(main())
