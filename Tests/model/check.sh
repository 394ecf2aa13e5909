#!/bin/sh
# Searches session.pml exhaustively (no bitstate hashing) within several bounds; fails if a property is
# violated or a search does not end. Then removes one rule of the protocol at a time; fails if a search
# finds no violation. Works in a temporary folder.
set -eu
model=$(cd "$(dirname "$0")" && pwd)/session.pml
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cp "$model" session.pml

# prepare "ACTS FAULTS EXPIRIES DATA" OPTIMISATION [-D...]: builds ./pan
prepare() {
  bounds=$1 optimised=$2
  shift 2
  # shellcheck disable=SC2086 # four words
  define $bounds "$@"
  cc "$optimised" -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=1900 -o pan pan.c
}

define() {
  acts=$1 faults=$2 expiries=$3 data=$4
  shift 4
  spin -DACTS="$acts" -DFAULTS="$faults" -DTICKS="$expiries" -DDATA="$data" "$@" -a session.pml
}

holds() {
  prepare "$1" -O1
  ./pan -n -m400000 -w24 > out || true
  states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
  if ! grep -q 'errors: 0' out || grep -q 'Search not completed' out || [ -z "$states" ]; then
    cat out
    exit 1
  fi
  states=$(printf '%.0f' "$states")
  total=$((total + states))
  echo "model: $acts acts, $faults faults, $expiries expiries, $data uploads: $states states, every property holds"
}

# breaks PROPERTY BOUNDS FLAG...: the search must find a violation of this property.
breaks() {
  property=$1 bounds=$2
  shift 2
  prepare "$bounds" -O0 "$@"
  ./pan -n -m400000 -w18 > out || true
  variants=$((variants + 1))
  if ! grep -F 'assertion violated' out | grep -qF "$property"; then
    echo "model: $* should violate this property, but the search found no violation: $property"
    cat out
    exit 1
  fi
  found=$((found + 1))
}

total=0
for bounds in "1 1 1 1" "2 0 1 0" "0 2 2 0"; do holds "$bounds"; done

variants=0
found=0
breaks 'refreshLeased' "1 0 1 0" -DMUTANT_NO_LEASE
breaks 'intent' "0 0 1 0" -DMUTANT_NO_INTENT
breaks '(user[session]==owner)' "1 0 1 0" -DMUTANT_NO_SWAP
breaks '!(alive[session])' "1 0 1 0" -DMUTANT_END_ANY
breaks '!(alive[session])' "0 1 1 0" -DMUTANT_END_WITHOUT_PROOF
breaks '(newest[session]-token)<=1' "1 1 1 0" -DMUTANT_USED_BEFORE_STORED
breaks 'uploadOwner[p]==uploadBearer[p]' "1 0 0 1" -DMUTANT_ITEMS_OF_THE_ROW
breaks 'before==session' "2 0 1 0" -DMUTANT_LOGOUT_READS_BEFORE
breaks 'openGeneration[p]!=0' "1 0 1 0" -DMUTANT_LOCK_GIVES_UP
breaks 'openGeneration[p]!=0' "1 0 0 0" -DMUTANT_LOCK_KEEPS_GENERATION
# The keys.
breaks 'wrapped[sessionKey]' "1 0 0 0" -DMUTANT_LOCK_KEEPS_THE_KEY
breaks 'wrapped[sessionKey]' "1 1 0 0" -DMUTANT_OWES_NOTHING
breaks 'wrapped[sessionKey]' "1 1 0 0" -DMUTANT_END_OWES_NOTHING
breaks 'wrapBiometric==biometric' "1 1 0 0" -DMUTANT_FORGETS_THE_OPEN_SESSION
breaks 'wrapBiometric==biometric' "2 1 0 0" -DMUTANT_BIOMETRIC_FIRST
# The assumptions about network and host are necessary: README.md.
breaks '!(reused)' "0 2 1 0" -DLIMIT_OVERTAKEN
breaks '!(reused)' "0 0 3 0" -DLIMIT_OVERTAKEN -DMUTANT_SENT_LATE
echo "model: $variants variants without a rule: a counterexample to $found"
echo "reliability: states of the session protocol: $total tried, $total survived"
