#!/usr/bin/env bash
# Fetches the Debian source packages of SQLite, libsodium and jansson, with the distribution's security fixes applied,
# into FOLDER/<name>, and their descriptions into FOLDER/<name>.dsc. It fetches nothing twice. It only reads the
# system's apt: lists, cache and source entries are private, derived from the Debian entries of the system.
# Usage: sources.sh FOLDER [PACKAGE...]; PACKAGEs are fetched in place of those three.
set -euo pipefail

folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift
packages=${*:-sqlite3 libsodium jansson}

missing=""
for package in $packages; do [ -e "$folder/$package" ] && [ -e "$folder/$package.dsc" ] || missing="$missing $package"; done
[ -n "$missing" ] || exit 0

apt=$folder/apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/parts"
: > "$apt/status"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
signed=""
[ ! -e "$keyring" ] || signed="[signed-by=$keyring] "
# The main archive comes first: a version that moved there may be gone from the security archive.
apt-get indextargets --format "deb-src $signed\$(REPO_URI) \$(RELEASE) \$(COMPONENT)" \
  "Created-By: Packages" "Origin: Debian" | sort -u | awk '/-security/ { last = last $0 "\n"; next } { print } END { printf "%s", last }' \
  > "$apt/sources.list"
[ -s "$apt/sources.list" ] || { echo "apt knows no Debian repository: run apt-get update, as root" >&2; exit 1; }

options=(-qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o "Dir::Etc::sourceparts=$apt/parts"
  -o "Dir::State=$apt" -o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status"
  -o "Dir::Cache=$apt" -o "Dir::Cache::archives=$apt/archives" -o "APT::Sandbox::User=")
log=$apt/log
trap 'tail -20 "$log" >&2' ERR
apt-get "${options[@]}" update > "$log" 2>&1
for package in $missing; do
  work=$(mktemp -d "$folder/unpack.XXXXXX")
  (cd "$work" && apt-get "${options[@]}" source --download-only "$package" && dpkg-source --no-check -x ./*.dsc source) >> "$log" 2>&1
  [ $package != sqlite3 ] || rm -r "$work/source/www" "$work/source/test" # 120 MB that no build needs
  rm -rf "${folder:?}/$package"
  mv "$work/source" "$folder/$package"
  mv "$work"/*.dsc "$folder/$package.dsc"
  rm -r "$work"
done
