#!/usr/bin/env bash
# Installs what the examples in Java, Go and Rust need and is missing, if Debian's packages can be had: about 300 MB on
# a new system. What cannot be installed is named, and its tests are skipped.
set -uo pipefail
cd "$(dirname "$0")/.."

missing=()
need() { [ -e "$2" ] || command -v "$2" > /dev/null || missing+=("$1"); }
need default-jdk-headless javac
need libjna-java /usr/share/java/jna.jar
need libgoogle-gson-java /usr/share/java/gson.jar
need golang-go "$(ls -d /usr/lib/go-*/bin/go 2> /dev/null | tail -n 1 | grep . || echo go)"
need cargo cargo
need librust-serde-json-dev "$(ls -d /usr/share/cargo/registry/serde_json-* 2> /dev/null | tail -n 1 | grep . || echo serde_json)"
[ ${#missing[@]} -eq 0 ] || mk/install-packages.sh "${missing[@]}" 2> /dev/null ||
  echo "not installed: ${missing[*]}; the tests of those examples are skipped (.build/setup.log)"
