#!/bin/bash
# run.sh SEEDS SHARE MEMORY_SHARE: run every part on both flavours of the library, one flavour per core.
set -eu
seeds=$1 share=$2 memory_share=$3
program=build/bin/holdfast-disk
# Use memory where possible: the test models syncs itself.
room=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/holdfast-disk.XXXXXX")
trap 'rm -rf "$room"' EXIT

flavour() {
  local failed=0 part
  for part in "power $seeds 1" "faults 1 $share" "memory 1 $memory_share"; do
    # shellcheck disable=SC2086  # three words
    set -- $part
    LD_LIBRARY_PATH="$library" "$program" "$1" "$room/$name" "$2" "$3" || failed=1
  done
  return $failed
}

status=0 pids=()
for library in build/lib build/lib-runtime; do
  name=$(basename "$library")
  flavour > "$room/$name.log" 2>&1 &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
for library in build/lib build/lib-runtime; do
  echo "$library"
  cat "$room/$(basename "$library").log"
done
exit $status
