#!/usr/bin/env bash
# valgrind on the libraries as they are shipped: every invalid access and every leak is an error.
#
# valgrind.sh day   the scripts of Tests/fuzz/seeds in one process: a user's days, good and bad
# valgrind.sh all   that on both flavours, and the unit tests
set -euo pipefail
cd "$(dirname "$0")/../.."
here=Tests/sanitizers
check=(valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect,possible
  --errors-for-leak-kinds=definite,indirect,possible --num-callers=30 --suppressions=$here/valgrind.supp)

day() {
  local scripts; scripts=$(cat <(ls Tests/fuzz/seeds) <(ls Tests/fuzz/regressions) | wc -l)
  LD_LIBRARY_PATH=$1 "${check[@]}" build/fuzz/replay Tests/fuzz/seeds/* Tests/fuzz/regressions/*
  echo "reliability: valgrind ($1): $scripts tried, $scripts survived"
}

day build/lib
if [ "$1" = all ]; then
  day build/lib-runtime
  "$here/unit.sh" "${check[@]}"
fi
