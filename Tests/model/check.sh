#!/bin/sh
# Searches session.pml exhaustively (no bitstate hashing), with three sets of bounds; a property that
# breaks, or a search that does not end, fails. The work is done in a folder of its own.
set -eu
model=$(cd "$(dirname "$0")" && pwd)/session.pml
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
total=0
for bounds in "1 1 1" "2 0 1" "0 2 2"; do
  set -- $bounds
  cp "$model" session.pml
  spin -DACTS="$1" -DFAULTS="$2" -DTICKS="$3" -DDATA=0 -a session.pml
  cc -O2 -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=1900 -o pan pan.c
  ./pan -m400000 -w24 > out
  grep -q 'errors: 0' out || { cat out; exit 1; }
  ! grep -q 'Search not completed' out || { cat out; exit 1; }
  states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
  echo "model: $1 acts, $2 faults, $3 expiries: $states states, every property holds"
  total=$((total + states))
done
echo "reliability: states of the session protocol: $total tried, $total survived"
