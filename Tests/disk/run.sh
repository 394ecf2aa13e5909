#!/usr/bin/env bash
# run.sh SEEDS SHARE MEMORY_SHARE: every part on the Embedded library, and on the ordinary one if HOLDFAST_FLAVOURS=all;
# HOLDFAST_FLAVOUR=embedded|runtime chooses one. As many parts at once as there are cores. Refused memory is for the
# Embedded library alone: the ordinary one has Swift's runtime inside, which ends the process then.
set -euo pipefail
flavours=embedded
[ "${HOLDFAST_FLAVOURS:-}" != all ] || flavours="embedded runtime"
flavours=${HOLDFAST_FLAVOUR:-$flavours}
# Use memory where possible: the test models syncs itself.
room=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/holdfast-disk.XXXXXX")
trap 'rm -rf "$room"' EXIT

# LIBRARY PART ARGUMENTS, the longest part first
for flavour in $flavours; do
  library=build/lib
  [ "$flavour" = embedded ] || library=build/lib-$flavour
  printf '%s %s %d %d\n' "$library" faults 1 "$2" "$library" power "$1" 1
  [ "$flavour" != embedded ] || echo "$library memory 1 $3"
done > "$room/parts"

part() { # ROOM LIBRARY PART ARGUMENTS
  local log=$1/log-${2##*/}-$3 status=0
  LD_LIBRARY_PATH=$2 build/bin/holdfast-disk "$3" "$1/${2##*/}-$3" "$4" "$5" > "$log" 2>&1 || status=1
  echo "$2: $(cat "$log")"
  return $status
}
export -f part
xargs -P "$(nproc)" -L 1 bash -c 'part "$@"' part "$room" < "$room/parts"
