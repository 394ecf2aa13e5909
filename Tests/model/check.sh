#!/usr/bin/env bash
# Searches session.pml exhaustively (no bitstate hashing) within several bounds; fails if a property is
# violated or a search does not end. Then removes one rule of the protocol at a time; fails if a search
# finds no violation. Two searches run at once, 210 MB each. Works in a temporary folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# prepare "ACTS FAULTS EXPIRIES DATA" OPTIMISATION [-D...]: builds ./pan
prepare() {
  local optimised=$2 acts faults expiries data
  read -r acts faults expiries data <<< "$1"
  spin -DACTS="$acts" -DFAULTS="$faults" -DTICKS="$expiries" -DDATA="$data" "${@:3}" -a session.pml
  cc "$optimised" -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=1900 -o pan pan.c
}

# holds BOUNDS: writes the number of states.
holds() {
  local states
  prepare "$1" -O1
  ./pan -n -m400000 -w24 > out || true
  states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
  if ! grep -q 'errors: 0' out || grep -q 'Search not completed' out || [ -z "$states" ]; then
    cat out
    return 1
  fi
  printf '%.0f\n' "$states" > states
  echo "model: bounds $1 (acts, faults, expiries, uploads): $(cat states) states, every property holds"
}

# breaks PROPERTY BOUNDS FLAG...: the search must find a violation of this property.
breaks() {
  prepare "$2" -O0 "${@:3}"
  ./pan -n -m400000 -w18 > out || true
  if ! grep -F 'assertion violated' out | grep -qF "$1"; then
    echo "model: ${*:3} should violate this property, but the search found no violation: $1"
    cat out
    return 1
  fi
}

# One search, in a folder of its own.
if [ $# != 0 ]; then
  work=$(mktemp -d "$MODEL_FOLDER/search.XXXXXX")
  cd "$work"
  cp "$here/session.pml" .
  "$@"
  exit
fi

MODEL_FOLDER=$(mktemp -d)
export MODEL_FOLDER
trap 'rm -rf "$MODEL_FOLDER"' EXIT
# The longest first.
searches='
holds "1 1 1 1"
holds "0 2 2 0"
holds "2 0 1 0"
breaks "refreshLeased" "1 0 1 0" -DMUTANT_NO_LEASE
breaks "intent" "0 0 1 0" -DMUTANT_NO_INTENT
breaks "(user[session]==owner)" "1 0 1 0" -DMUTANT_NO_SWAP
breaks "!(alive[session])" "1 0 1 0" -DMUTANT_END_ANY
breaks "!(alive[session])" "0 1 1 0" -DMUTANT_END_WITHOUT_PROOF
breaks "(newest[session]-token)<=1" "1 1 1 0" -DMUTANT_USED_BEFORE_STORED
breaks "uploadOwner[p]==uploadBearer[p]" "1 0 0 1" -DMUTANT_ITEMS_OF_THE_ROW
breaks "before==session" "2 0 1 0" -DMUTANT_LOGOUT_READS_BEFORE
breaks "openGeneration[p]!=0" "1 0 1 0" -DMUTANT_LOCK_GIVES_UP
breaks "openGeneration[p]!=0" "1 0 0 0" -DMUTANT_LOCK_KEEPS_GENERATION
# The keys.
breaks "wrapped[sessionKey]" "1 0 0 0" -DMUTANT_LOCK_KEEPS_THE_KEY
breaks "wrapped[sessionKey]" "1 1 0 0" -DMUTANT_OWES_NOTHING
breaks "wrapped[sessionKey]" "1 1 0 0" -DMUTANT_END_OWES_NOTHING
breaks "wrapBiometric==biometric" "2 2 0 0" -DMUTANT_FORGETS_THE_OPEN_SESSION
breaks "wrapBiometric==biometric" "2 1 0 0" -DMUTANT_BIOMETRIC_FIRST
# The assumptions about network and host are necessary: README.md.
breaks "!(reused)" "0 2 1 0" -DLIMIT_OVERTAKEN
breaks "!(reused)" "0 0 3 0" -DLIMIT_OVERTAKEN -DMUTANT_SENT_LATE
'
variants=$(grep -c ^breaks <<< "$searches")
grep -E '^(holds|breaks)' <<< "$searches" | xargs -P 2 -L 1 "$0" || exit 1
echo "model: $variants variants without a rule: a counterexample to each"
total=$(($(cat "$MODEL_FOLDER"/search.*/states | paste -sd+)))
echo "reliability: states of the session protocol: $total tried, $total survived"
