#!/usr/bin/env bash
# The unit tests under a checker: `unit.sh VALGRIND...`. The one test that walks through every situation
# there is takes seconds natively and hours here; the same code is reached by the tests beside it.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p build/valgrind
swift build --build-tests --disable-xctest --scratch-path .build-test > build/valgrind/build.log 2>&1 ||
  { tail -30 build/valgrind/build.log; exit 1; }
# Without line numbers: Debian 12's valgrind does not read the DWARF that Swift writes.
strip -g -o build/valgrind/unit-tests .build-test/debug/HoldfastPackageTests.xctest
cc -shared -fPIC -O1 -Wall -Wextra -Werror -o build/valgrind/sigsuspend.so Tests/sanitizers/sigsuspend.c
LD_PRELOAD=$PWD/build/valgrind/sigsuspend.so "$@" build/valgrind/unit-tests --testing-library swift-testing --no-parallel \
  --skip WholeProduct ${UNIT_FILTER:+--filter "$UNIT_FILTER"} 2>&1 | grep -vE '^◇|started\.$|✔ (Test|Suite) .* passed'
