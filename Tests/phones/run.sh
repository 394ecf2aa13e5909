#!/usr/bin/env bash
# Runs the hosts in C on arm64 as on a phone: the tour of examples/c, the threads of Tests/sanitizers and the scripts of
# Tests/fuzz, each three times: as it is; on a heap that marks its pointers, as Android's does, with pages of 16 kB;
# without hard links, with pages of 64 kB.
# Usage: run.sh ROUNDS-OF-THREADS. HOLDFAST_EMULATOR and QEMU_LD_PREFIX name the emulator and the target's files.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=$1
programs=$PWD/build/arm64
libraries=$PWD/build/lib-arm64
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# emulated PRELOADED PROGRAM ARGUMENT...
emulated() {
  QEMU_SET_ENV="LD_LIBRARY_PATH=$libraries${1:+,LD_PRELOAD=$1}" "$HOLDFAST_EMULATOR" "${@:2}"
}

# The demo starts one program.
printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$HOLDFAST_EMULATOR" "$programs/shell" > "$folder/shell"
chmod +x "$folder/shell"
scripts=(Tests/fuzz/seeds/* Tests/fuzz/regressions/*)

# phone NAME PRELOADED PAGE-SIZE
phone() {
  local name=$1 preloaded=$2 survived=0 log
  export QEMU_PAGESIZE=$3
  log=$folder/$name.log
  mkdir "$folder/$name"
  # shellcheck disable=SC2015 # counts the first parts that pass
  {
    emulated "$preloaded" "$programs/replay" "${scripts[@]}" && survived=1 &&
      emulated "$preloaded" "$programs/stress" "$folder/$name" "$rounds" && survived=2 &&
      QEMU_SET_ENV="LD_LIBRARY_PATH=$libraries${preloaded:+,LD_PRELOAD=$preloaded}" \
        examples/c/demo.sh "$folder/shell" && survived=3
  } > "$log" 2>&1 || { echo "-- arm64, $name:"; tail -n 40 "$log"; }
  echo "reliability: arm64, $name: scripts of calls, threads, tour: 3 tried, $survived survived"
  [ $survived = 3 ]
}

failed=0 running=()
phone "as it is" "" 4096 & running+=($!)
phone "marked pointers, pages of 16 kB" "$programs/heap.so" 16384 & running+=($!)
phone "no hard links, pages of 64 kB" "$programs/links.so" 65536 & running+=($!)
for one in "${running[@]}"; do wait "$one" || failed=1; done
exit $failed
