#!/usr/bin/env bash
# `unit.sh VALGRIND...`: the unit tests under valgrind. They are optimised: otherwise the tests that visit every
# situation of Policy would take hours.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p build/valgrind
swift build -c release --build-tests --disable-xctest -Xswiftc -enable-testing --scratch-path .build-valgrind \
  > build/valgrind/build.log 2>&1 || { tail -30 build/valgrind/build.log; exit 1; }
# Strip line numbers: Debian 12's valgrind cannot read Swift's DWARF.
strip -g -o build/valgrind/unit-tests .build-valgrind/release/HoldfastPackageTests.xctest
cc -shared -fPIC -O1 -Wall -Wextra -Werror -o build/valgrind/sigsuspend.so Tests/sanitizers/sigsuspend.c
status=0 log=build/valgrind/unit.log
# Not in parallel: valgrind runs one thread at a time. No backtraces: Swift's crash report reads invalid memory.
LD_PRELOAD=$PWD/build/valgrind/sigsuspend.so SWIFT_BACKTRACE=enable=no "$@" build/valgrind/unit-tests --testing-library swift-testing \
  --no-parallel ${UNIT_FILTER:+--filter "$UNIT_FILTER"} > "$log" 2>&1 || status=$?
grep -vE '^◇|^↳|started\.$|✔ (Test|Suite) .* passed' "$log" || true
# Without its last line, the run did not finish.
run=$(sed -nE 's/.*Test run with ([0-9]+) tests? .*/\1/p' "$log")
failed=$(grep -cE '^✘ Test .* failed after' "$log" || true)
[ -n "$run" ] || status=1
# A finding of valgrind belongs to no single test: count all as failed.
[ $status = 0 ] || [ "$failed" != 0 ] || failed=${run:-0}
echo "reliability: unit tests under valgrind: ${run:-0} tried, $((${run:-0} - failed)) survived"
exit $status
