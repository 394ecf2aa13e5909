#!/usr/bin/env bash
# Builds the wheel with a library inside and prints its path.
# Usage: build.sh FOLDER-OF-THE-LIBRARY FOLDER-FOR-THE-WHEEL
set -euo pipefail
carried=$(realpath "$1")
folder=$(mkdir -p "$2" && realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

# Build in a copy: building leaves files behind, and the library must not stay in the source tree.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here"/{pyproject.toml,setup.py,README.md,src} "$work/"
cp "$root/LICENSE" "$carried"/LICENSE.* "$work/"
cp "$carried/libholdfast.so" "$work/src/holdfast/"
"$root/.venv/bin/python" "$here/tools/wheel_pages.py" "$work"
mkdir "$work/sboms"
cp "$carried/holdfast.cdx.json" "$work/sboms/"
rm -f "$folder"/holdfast-*.whl
# No build isolation: .venv has setuptools, so pip downloads nothing.
"$root/.venv/bin/python" -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w "$folder" "$work"
echo "$folder"/holdfast-*.whl
