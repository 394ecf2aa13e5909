#!/usr/bin/env bash
# Runs valgrind on the shipped libraries: every invalid access and every leak is an error.
#
# valgrind.sh day   the scripts of Tests/fuzz in one process
# valgrind.sh all   the same on both flavours, and the unit tests
set -euo pipefail
cd "$(dirname "$0")/../.."
here=Tests/sanitizers
check=(valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect,possible
  --errors-for-leak-kinds=definite,indirect,possible --num-callers=30 --suppressions=$here/valgrind.supp)

status=0

# day LIBRARY'S FOLDER
day() {
  local scripts=(Tests/fuzz/seeds/* Tests/fuzz/regressions/*)
  local survived=${#scripts[@]}
  LD_LIBRARY_PATH=$1 "${check[@]}" build/fuzz/replay "${scripts[@]}" || survived=0 status=1
  echo "reliability: scripts of calls under valgrind ($1): ${#scripts[@]} tried, $survived survived"
}

day build/lib
if [ "$1" = all ]; then
  day build/valgrind/lib-runtime
  "$here/unit.sh" "${check[@]}" || status=1
fi
exit $status
