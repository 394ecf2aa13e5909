#!/usr/bin/env bash
# Installs the Debian packages that are missing. Usage: install-packages.sh PACKAGE...
set -euo pipefail

if ! command -v apt-get dpkg-query > /dev/null; then
  echo "make setup installs Debian packages only. Install what corresponds to: $*"
  exit 0
fi
installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2> /dev/null | sed -n 's/ installed$//p') || true
missing=()
for package; do grep -qxF "$package" <<< "$installed" || missing+=("$package"); done
[ ${#missing[@]} -gt 0 ] || exit 0

echo "installing: ${missing[*]}"
sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)
log=.build/setup.log
run() { "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >> $log 2>&1 || { tail -n 20 $log >&2; exit 1; }; }
: > $log
run apt-get update -qq
run apt-get install -y -qq --no-install-recommends "${missing[@]}"
