#!/usr/bin/env bash
# Writes the lock of the Python packages: those that the requirements files name and those that they need, each
# with its version and the hashes of all its files, for every platform. Usage: lock-requirements.sh LOCK FILE...
# Versions stay as they are in the lock, unless a requirements file says otherwise.
set -euo pipefail
lock=$1
shift
tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
python3 -m venv "$tool"
"$tool/bin/pip" install -q --disable-pip-version-check uv==0.13.9
echo "# Written by make lock. pip installs nothing that has another hash." > "$tool/lock"
cp "$lock" "$tool/versions"
"$tool/bin/uv" pip compile -q --no-cache --native-tls --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
  --constraint <(sed -n 's/^\([^ #]*==[^ ]*\).*/\1/p' "$tool/versions") "$@" >> "$tool/lock"
mv "$tool/lock" "$lock"
