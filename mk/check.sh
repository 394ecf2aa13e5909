#!/usr/bin/env bash
# Says what is missing for a target, and how to get it.
# Usage: check.sh lib|http|wheel|node|jvm|desktop; SWIFT, CLANG and NODE are set.
set -euo pipefail
target=$1
missing=()

# header NAME PACKAGE
header() { echo "#include <$1>" | "$CLANG" -fsyntax-only -x c - 2> /dev/null || missing+=("$2"); }
# file PATH PACKAGE
file() { [ -e "$1" ] || missing+=("$2"); }
# tool NAME PACKAGE
tool() { command -v "$1" > /dev/null || missing+=("$2"); }

if ! "$SWIFT" --version 2> /dev/null | grep -qE 'Swift version (6\.([3-9]|[1-9][0-9])|[7-9])'; then
  echo "Swift 6.3 or newer must be on the PATH: https://www.swift.org/install" >&2
  exit 1
fi
case $target in
  lib)
    # The C library's headers come with the compiler.
    header stdio.h g++
    # clang answers with the bare name when it does not find the file.
    [ "$("$CLANG" -print-file-name=libstdc++.so)" != libstdc++.so ] || missing+=(g++)
    tool strip binutils
    header sqlite3.h libsqlite3-dev
    header sodium.h libsodium-dev
    header jansson.h libjansson-dev
    ;;
  http)
    header curl/curl.h libcurl4-openssl-dev
    ;;
  wheel)
    tool apt-get apt
    tool dpkg-source dpkg-dev
    tool cc g++
    tool python3 python3
    tool patch patch
    tool xz xz-utils
    tool tclsh tcl
    tool autoreconf autoconf
    tool automake automake
    tool libtoolize libtool
    ;;
  jvm)
    tool javac default-jdk-headless
    file /usr/share/java/gson.jar libgoogle-gson-java
    file /usr/share/java/okhttp.jar libokhttp-java
    file /usr/share/java/junit-jupiter-api.jar junit5
    ;;
  desktop)
    tool pkg-config pkg-config
    pkg-config --exists libadwaita-1 || missing+=(libadwaita-1-dev)
    pkg-config --exists libsecret-1 || missing+=(libsecret-1-dev)
    tool Xvfb xvfb
    tool xdotool xdotool
    tool convert imagemagick
    ;;
  node)
    tool tsc node-typescript
    tool cc g++
    if [ -z "$NODE" ]; then
      echo "Node 20 or newer must be on the PATH, or in .venv: run make setup" >&2
      exit 1
    fi
    ;;
esac
if [ ${#missing[@]} -gt 0 ]; then
  case $target in
    lib | http) setup="make setup" ;;
    wheel) setup="make setup-tools" ;;
    *) setup="make setup-tools PARTS=$target" ;;
  esac
  packages=$(printf '%s\n' "${missing[@]}" | sort -u | tr '\n' ' ')
  echo "missing Debian packages: $packages- install them, or run $setup" >&2
  exit 1
fi
