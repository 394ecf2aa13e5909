#!/usr/bin/env bash
# Unpacks Debian packages of another processor into a folder, with the packages that they need. Nothing is installed.
# Usage: sysroot.sh ARCHITECTURE FOLDER PACKAGE...
set -euo pipefail

architecture=$1
folder=$(realpath -m "$2")
shift 2
mkdir -p "$folder.apt"/{lists/partial,archives/partial}
log=$folder.apt/log
# A state and a cache of its own: apt of the machine does not learn of the processor.
apt=(-qq -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture"
  -o "Dir::State::Lists=$folder.apt/lists" -o "Dir::State::status=/dev/null" -o "Dir::Cache=$folder.apt"
  -o "Dir::Cache::archives=$folder.apt/archives" -o "Debug::NoLocking=1" -o "APT::Sandbox::User=")
run() { "$@" >> "$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }; }
: > "$log"
run apt-get "${apt[@]}" update
run apt-get "${apt[@]}" install --download-only --no-install-recommends -y "$@"
rm -rf "$folder.new"
mkdir "$folder.new"
for package in "$folder.apt"/archives/*.deb; do run dpkg -x "$package" "$folder.new"; done
# Links to absolute names would lead out of the folder.
find "$folder.new" -type l -lname '/*' | while read -r link; do
  ln -sfnr "$folder.new$(readlink "$link")" "$link"
done
rm -rf "$folder" "$folder.apt"
mv "$folder.new" "$folder"
