"""Writes the bill of materials of the bundled library: CycloneDX 1.6, in JSON.

Usage: bill.py FOLDER-OF-THE-SOURCES LIBRARY VERSION SWIFT-VERSION > FILE. Versions, files and
hashes are those of the Debian source packages that `sources.sh` fetched. The same sources and
library give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import uuid
from pathlib import Path
from typing import Any

Component = dict[str, Any]

#: The Debian source packages: name, SPDX licence, and name in vulnerability databases.
PACKAGES = {
    "sqlite3": ("sqlite", "blessing", "sqlite:sqlite"),
    "libsodium": ("libsodium", "ISC", "libsodium:libsodium"),
    "jansson": ("jansson", "MIT", "jansson_project:jansson"),
}


def hashes(digest: str) -> list[dict[str, str]]:
    """The hashes of a component or file."""
    return [{"alg": "SHA-256", "content": digest}]


def upstream(version: str) -> str:
    """The upstream version in a Debian version: [epoch:]upstream[-revision], without +dfsg."""
    without_revision = version.partition(":")[2] or version
    if "-" in without_revision:
        without_revision = without_revision.rpartition("-")[0]
    return re.split(r"[+~]", without_revision)[0]


def component(package: str, description: bytes) -> Component:
    """A source package, from its .dsc file."""
    text = description.decode("utf-8")
    [version] = re.findall(r"^Version: (\S+)$", text, flags=re.MULTILINE)
    sums = text.split("Checksums-Sha256:\n", 1)[1]
    files = re.findall(r"^ ([0-9a-f]{64}) \d+ (\S+)$", re.split(r"^\S", sums, flags=re.M)[0], re.M)
    name, licence, product = PACKAGES[package]
    plain = upstream(version)
    own = f"{package}_{version.partition(':')[2] or version}.dsc"
    described = (hashlib.sha256(description).hexdigest(), own)
    return {
        "type": "library",
        "bom-ref": name,
        "name": name,
        "version": plain,
        "description": f"Debian's source package {package} {version}, linked in",
        "licenses": [{"license": {"id": licence}}],
        "cpe": f"cpe:2.3:a:{product}:{plain}:*:*:*:*:*:*:*",
        "purl": f"pkg:deb/debian/{package}@{version.replace('+', '%2B')}?arch=source",
        "externalReferences": [
            {"type": "source-distribution", "url": file, "hashes": hashes(digest)}
            for digest, file in [described, *sorted(files, key=lambda each: each[1])]
        ],
    }


def bill(sources: Path, library: Path, version: str, swift: str) -> dict[str, Any]:
    """The whole document."""
    components = [
        component(package, (sources / f"{package}.dsc").read_bytes()) for package in PACKAGES
    ]
    components.append(
        {
            "type": "library",
            "bom-ref": "swift-stdlib",
            "name": "swift-stdlib",
            "version": swift,
            "description": "The used parts of Embedded Swift's standard library, linked in",
            "licenses": [{"expression": "Apache-2.0 WITH Swift-exception"}],
            "purl": f"pkg:github/swiftlang/swift@swift-{swift}-RELEASE",
        }
    )
    digest = hashlib.sha256(library.read_bytes()).hexdigest()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # The same for the same library.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "library",
                "bom-ref": "holdfast",
                "name": "holdfast",
                "version": version,
                "licenses": [{"license": {"id": "MIT"}}],
                "hashes": hashes(digest),
            },
        },
        "components": components,
        "dependencies": [
            {"ref": "holdfast", "dependsOn": [each["bom-ref"] for each in components]},
            *({"ref": each["bom-ref"]} for each in components),
        ],
    }


if __name__ == "__main__":
    folder, built, named, compiler = sys.argv[1:]
    print(json.dumps(bill(Path(folder), Path(built), named, compiler), indent=2))
