#!/usr/bin/env bash
# Prepares Python of an unpacked Debian for arm64 to run this project's tests under qemu, and prints the script that
# starts it. Usage: arm64-python.sh ROOT VENV LOCK
set -euo pipefail

root=$(realpath "$1")
venv=$2
lock=$3
# Packages with native code that the tests of the C API import; everything else is plain Python.
native=(hypothesis jsonschema-rs)

packages=$root/packages
rm -rf "$packages"
pattern=$(IFS='|'; echo "${native[*]}")
# The lock's entries of these packages, with their hashes.
awk -v names="^($pattern)==" '/^[A-Za-z]/ { wanted = $0 ~ names } wanted' "$lock" > "$root/native.txt"
"$venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes --target "$packages" \
  --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 --python-version 3.11 --only-binary=:all: \
  -r "$root/native.txt"
site=$root/usr/lib/python3/dist-packages
mkdir -p "$site"
{ echo "$packages"; "$venv/bin/python" -c 'import site; print(*site.getsitepackages(), sep="\n")'; } > "$site/tests.pth"
# -0: Python starts its children by this script. A library to preload is for the emulated program.
cat << END
#!/bin/bash
preload=\${LD_PRELOAD:-}
unset LD_PRELOAD
exec qemu-aarch64 -0 "\$0" -L '$root' \${preload:+-E LD_PRELOAD="\$preload"} '$root/usr/bin/python3.11' "\$@"
END
