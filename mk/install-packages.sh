#!/usr/bin/env bash
# Installs the Debian packages that are missing, and is the only place that does. Usage: install-packages.sh PACKAGE...
# It waits for another run of apt, and tries a download again.
set -euo pipefail
cd "$(dirname "$0")/.."

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
mkdir -p .build
log=.build/setup.log
options=(-qq -o DPkg::Lock::Timeout=600 -o Acquire::Retries=5)
run() { "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" "$@" >> $log 2>&1; }
: > $log
# A mirror that is being updated fails for a moment.
for pause in 5 20 60 end; do
  if run update && run install -y --no-install-recommends "${missing[@]}"; then exit 0; fi
  [ $pause = end ] || sleep $pause
done
tail -n 20 $log >&2
exit 1
