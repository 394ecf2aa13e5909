#!/usr/bin/env bash
# Writes the locks of the Python packages beside their lists: mk/requirements/NAME.txt gives NAME.lock, which has those
# packages and all that they need, each with its version and the hashes of all its files, for every platform. The locks
# agree with each other. Versions stay as they are, unless a list says otherwise. Usage: lock-requirements.sh NAME...
set -euo pipefail
cd "$(dirname "$0")/requirements"
tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
python3 -m venv "$tool"
"$tool/bin/pip" install -q --disable-pip-version-check uv==0.13.9
versions() { sed -n 's/^\([^ #]*==[^ ]*\).*/\1/p' "$@"; }
locks=()
for name; do [ ! -e "$name.lock" ] || locks+=("$name.lock"); done
versions /dev/null "${locks[@]}" | sort -u > "$tool/versions"
for name; do
  # A package that an earlier lock has keeps that version; a list that names another one is the author's mistake.
  "$tool/bin/uv" pip compile -q --no-cache --native-tls --universal --python-version 3.11 --generate-hashes --no-header \
    --no-annotate --constraint "$tool/versions" "$name.txt" > "$tool/lock"
  versions "$tool/lock" >> "$tool/versions"
  { echo "# Written by make lock. pip installs nothing that has another hash."; cat "$tool/lock"; } > "$name.lock"
done
