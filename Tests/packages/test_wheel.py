"""The wheel in an otherwise empty environment: no compiler, no system packages."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from consumers import ROOT, run

CONFIG = (
    "{'data_dir': 'data', 'backend': {'url': 'http://127.0.0.1:9', 'api_key': 'k'},"
    " 'auth_methods': [{'id': 'password', 'flow': 'password'}],"
    " 'keystore': {'kind': 'file'}, 'policy': {'biometric': 'off'}}"
)


def test_its_tag_matches_its_library(wheel: Path) -> None:
    assert re.fullmatch(r"holdfast-[\d.]+-py3-none-manylinux_2_\d+_\w+\.whl", wheel.name)
    tag = wheel.stem.split("-")[-1]
    auditwheel = ROOT / ".venv" / "bin" / "auditwheel"
    verdict = " ".join(run(auditwheel, "show", wheel).split())
    assert f'is consistent with the following platform tag: "{tag}"' in verdict


def test_it_holds_the_library_the_types_and_the_licences(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        carried = archive.read("holdfast/libholdfast.so")
    assert carried == (ROOT / "build" / "lib-bundled" / "libholdfast.so").read_bytes()
    assert "holdfast/py.typed" in names
    licences = {Path(name).name for name in names if "/licenses/" in name}
    assert licences == {"LICENSE", "LICENSE.libsodium", "LICENSE.jansson"}


def bill_of(wheel: Path) -> dict[str, Any]:
    with zipfile.ZipFile(wheel) as archive:
        [bill] = [name for name in archive.namelist() if ".dist-info/sboms/" in name]
        assert bill.endswith("/holdfast.cdx.json")
        document: dict[str, Any] = json.loads(archive.read(bill))
    return document


def test_lock_19_it_holds_the_bill_of_materials_of_its_library(wheel: Path) -> None:
    bill = bill_of(wheel)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    with zipfile.ZipFile(wheel) as archive:
        library = archive.read("holdfast/libholdfast.so")
    described = bill["metadata"]["component"]
    assert described["hashes"] == [
        {"alg": "SHA-256", "content": hashlib.sha256(library).hexdigest()}
    ]
    assert f"holdfast-{described['version']}-" in wheel.name
    names = [component["name"] for component in bill["components"]]
    assert names == ["sqlite", "libsodium", "jansson", "swift-stdlib"]
    assert bill["dependencies"][0] == {"ref": "holdfast", "dependsOn": names}
    for component in bill["components"]:
        assert component["licenses"] and component["version"] and component["purl"]
    for component in bill["components"][:3]:
        kinds = [Path(one["url"]).suffix for one in component["externalReferences"]]
        assert ".dsc" in kinds and len(kinds) >= 3, "the description, the source, the fixes"
        for one in component["externalReferences"]:
            assert re.fullmatch("[0-9a-f]{64}", one["hashes"][0]["content"])


def test_lock_19_the_bill_names_the_sources_that_were_built(wheel: Path) -> None:
    sources = ROOT / ".build" / "bundle" / "sources"
    components = {one["name"]: one for one in bill_of(wheel)["components"]}
    for package, name in {
        "sqlite3": "sqlite",
        "libsodium": "libsodium",
        "jansson": "jansson",
    }.items():
        text = (sources / f"{package}.dsc").read_text("utf-8")
        [version] = re.findall("^Version: (.*)$", text, flags=re.MULTILINE)
        component = components[name]
        assert version.startswith(component["version"] + "-")
        assert (
            component["purl"]
            == f"pkg:deb/debian/{package}@{version.replace('+', '%2B')}?arch=source"
        )
        for one in component["externalReferences"][1:]:
            assert f" {one['hashes'][0]['content']} " in text
        changes = (sources / package / "debian" / "changelog").read_text("utf-8")
        assert f"({version})" in changes.splitlines()[0]


def test_lock_19_the_library_names_the_versions_of_the_bill(wheel: Path, app_python: Path) -> None:
    script = "import holdfast, json; print(json.dumps(holdfast.build_info()))"
    info = json.loads(run(app_python, "-c", script))
    assert info["flavour"] == "bundled"
    for component in bill_of(wheel)["components"][:3]:
        assert info[component["name"]] == component["version"]


def test_its_version_matches_the_library(app_python: Path) -> None:
    script = (
        "import holdfast, importlib.metadata as m; print(holdfast.version(), m.version('holdfast'))"
    )
    loaded, packaged = run(app_python, "-c", script).split()
    [source] = re.findall('"(.*)"', (ROOT / "Sources/Base/Version.swift").read_text("utf-8"))
    assert loaded == packaged == source


def test_it_loads_only_its_own_library(app_python: Path, tmp_path: Path) -> None:
    script = f"""
import holdfast, re
with holdfast.Holdfast({CONFIG}) as app:
    assert app.screen["screen"] == "sign_in"
    print(holdfast.Library.default().path)
    maps = open("/proc/self/maps").read()
    print(*sorted(set(re.findall(r"lib(?:sqlite3|sodium|jansson|curl|holdfast)[^/\\s]*", maps))))
"""
    path, loaded = run(app_python, "-c", script, folder=tmp_path).splitlines()
    assert Path(path).is_relative_to(app_python.parents[1])
    assert loaded == "libholdfast.so"


def test_mypy_checks_code_against_its_types(app_python: Path, tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(
        "from holdfast import AsyncHoldfast, Holdfast\n\n"
        "def state(app: Holdfast) -> str:\n    return app.session_status()['state']\n\n"
        "async def later(app: AsyncHoldfast) -> str:\n"
        "    async for thing in app:\n"
        "        if 'screen' in thing:\n"
        "            return thing['screen']['screen']\n"
        "    return (await app.session_status())['state']\n"
    )
    (tmp_path / "wrong.py").write_text(
        "from holdfast import Holdfast\n\n"
        "def wrong(app: Holdfast) -> int:\n    return app.session_status()['state']\n"
    )
    mypy: list[str | Path] = [
        ROOT / ".venv/bin/mypy",
        "--strict",
        "--python-executable",
        app_python,
    ]
    run(*mypy, "right.py", folder=tmp_path)
    done = subprocess.run(
        [*mypy, "wrong.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Incompatible return value type" in done.stdout, done.stdout


def test_a_spawned_process_opens_the_same_folder(app_python: Path, tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(
        f"""
import multiprocessing
from holdfast import Holdfast

CONFIG = {CONFIG} | {{"clock": "system"}}

def in_child(number):
    with Holdfast(CONFIG) as app:
        return app.screen["screen"], app.session_status()["state"]

if __name__ == "__main__":
    with Holdfast(CONFIG) as app, multiprocessing.get_context("spawn").Pool(3) as pool:
        answers = pool.map(in_child, range(6))
        assert answers == [("sign_in", "signed_out")] * 6, answers
        try:
            pool.apply(print, (app,))
        except TypeError as error:
            print(error)
"""
    )
    assert "open its data_dir there" in run(app_python, "work.py", folder=tmp_path)


def test_a_forked_process_gets_an_error(app_python: Path, tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(
        f"""
import asyncio, multiprocessing
from holdfast import AsyncHoldfast, ForkedError, Holdfast

def in_child(app, asynchronous, said):
    calls = [app.session_status, app.next, app.news]
    calls += [lambda: asyncio.run(asynchronous.session_status())]
    for call in calls:
        try:
            call()
        except ForkedError as error:
            said.put((error.code, error.status))
        else:
            said.put("answered")
    asyncio.run(asynchronous.close())
    with Holdfast({CONFIG}) as own:
        said.put(own.screen["screen"])

async def main():
    fork = multiprocessing.get_context("fork")
    with Holdfast({CONFIG}) as app:
        async with AsyncHoldfast({CONFIG}) as asynchronous:
            await asynchronous.session_status()
            said = fork.SimpleQueue()
            child = fork.Process(target=in_child, args=(app, asynchronous, said))
            child.start()
            child.join(120)
            assert child.exitcode == 0, child.exitcode
            for _ in range(4):
                assert (answer := said.get()) == ("handle.forked", 10), answer
            print(said.get(), app.session_status()["state"])

asyncio.run(main())
"""
    )
    assert run(app_python, "work.py", folder=tmp_path).split() == ["sign_in", "signed_out"]
