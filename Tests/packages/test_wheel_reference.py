"""The documentation in the wheel: pages, their links, and the texts of help()."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from consumers import ROOT, run
from pages import anchors, links

SCHEMA: dict[str, Any] = json.loads((ROOT / "include/holdfast.schema.json").read_text("utf-8"))
OPERATIONS: dict[str, Any] = {
    name: one for name, one in SCHEMA["x-operations"].items() if name != "open"
}


def members(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_reference_is_in_the_wheel(wheel: Path, app_python: Path) -> None:
    script = "import holdfast, pathlib; print(pathlib.Path(holdfast.__file__).parent / 'docs')"
    folder = Path(run(app_python, "-c", script).strip())
    assert (folder / "holdfast.h").read_bytes() == (ROOT / "include/holdfast.h").read_bytes()
    assert json.loads((folder / "holdfast.schema.json").read_text("utf-8")) == SCHEMA
    reference = (folder / "reference.md").read_text("utf-8")
    for name in OPERATIONS:
        assert f"### holdfast_{name}\n" in reference
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert {path.name for path in folder.glob("*.md")} == pages


def test_links_of_the_wheel_resolve_inside_it(wheel: Path) -> None:
    inside = members(wheel)
    [metadata] = [name for name in inside if name.endswith(".dist-info/METADATA")]
    readme = inside[metadata].decode("utf-8").split("\n\n", 1)[1]
    texts = {"README": readme} | {
        name: text.decode("utf-8") for name, text in inside.items() if name.endswith(".md")
    }
    followed = 0
    for name, text in texts.items():
        for link in links(text):
            if link.startswith(("https://", "http://", "mailto:")):
                continue
            path, _, anchor = link.partition("#")
            parts: list[str] = list(PurePosixPath(name).parent.parts) if path else []
            for part in PurePosixPath(path).parts:
                if part == "..":
                    parts.pop()
                else:
                    parts.append(part)
            target = "/".join(parts) if path else name
            assert target in inside or target == "README", f"{name}: {link}"
            if anchor:
                assert anchor in anchors(texts[target]), f"{name}: {link}"
            followed += 1
    assert followed > 100
    assert any("holdfast/docs/reference.md" in link for link in links(readme))


@pytest.mark.parametrize("owner", ["Holdfast", "AsyncHoldfast"])
def test_help_explains_every_operation(owner: str, app_python: Path) -> None:
    script = (
        "import holdfast, inspect, json\n"
        f"owner = holdfast.{owner}\n"
        f"names = {list(OPERATIONS)!r}\n"
        "print(json.dumps({name: inspect.getdoc(getattr(owner, name)) for name in names}))"
    )
    texts: dict[str, str] = json.loads(run(app_python, "-c", script))
    for name, operation in OPERATIONS.items():
        text = texts[name]
        assert text.startswith(operation["description"].split(". ")[0]), name
        for side in ("request", "reply"):
            shape = SCHEMA["$defs"][operation[side]["$ref"].rsplit("/", 1)[1]]
            for field, about in shape.get("properties", {}).items():
                explained = re.search(rf"^ +{field} \(", text, flags=re.MULTILINE)
                assert explained, f"{name} does not explain {field}"
                if "description" in about:
                    said = " ".join(text.split())
                    assert " ".join(about["description"].split()) in said, f"{name}: {field}"
        for code in operation.get("errors", []):
            assert code in text, f"{name} does not name {code}"


def test_help_of_the_package_says_where_the_reference_is(app_python: Path) -> None:
    text = run(app_python, "-c", "import holdfast; help(holdfast)")
    assert "docs/reference.md" in text
    for name in ("HttpTransport", "KeyStore", "Runner", "build_info"):
        assert name in text
