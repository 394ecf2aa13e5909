#!/usr/bin/env bash
# The wheel that carries a library. Usage: build.sh FOLDER-OF-THE-LIBRARY FOLDER-FOR-THE-WHEEL; prints its path.
set -euo pipefail
carried=$(realpath "$1")
folder=$(mkdir -p "$2" && realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

# In a copy: building leaves files behind, and the library must not stay in the source tree.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here"/{pyproject.toml,setup.py,README.md,src} "$work/"
cp "$root/LICENSE" "$carried"/LICENSE.* "$work/"
cp "$carried/libholdfast.so" "$work/src/holdfast/"
rm -f "$folder"/holdfast-*.whl
# Without isolation: setuptools is in .venv, so that nothing is downloaded.
"$root/.venv/bin/python" -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w "$folder" "$work"
echo "$folder"/holdfast-*.whl
