#!/usr/bin/env bash
# The unit tests under a checker: `unit.sh VALGRIND...`. Built for speed: without it, those that walk through
# every situation there is would take hours here.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p build/valgrind
swift build -c release --build-tests --disable-xctest -Xswiftc -enable-testing --scratch-path .build-valgrind \
  > build/valgrind/build.log 2>&1 || { tail -30 build/valgrind/build.log; exit 1; }
# Without line numbers: Debian 12's valgrind does not read the DWARF that Swift writes.
strip -g -o build/valgrind/unit-tests .build-valgrind/release/HoldfastPackageTests.xctest
cc -shared -fPIC -O1 -Wall -Wextra -Werror -o build/valgrind/sigsuspend.so Tests/sanitizers/sigsuspend.c
status=0 log=build/valgrind/unit.log
# One after the other, as valgrind runs one thread at a time. Swift's own report of a crash reads memory that is not there.
LD_PRELOAD=$PWD/build/valgrind/sigsuspend.so SWIFT_BACKTRACE=enable=no "$@" build/valgrind/unit-tests --testing-library swift-testing \
  --no-parallel ${UNIT_FILTER:+--filter "$UNIT_FILTER"} > "$log" 2>&1 || status=$?
grep -vE '^◇|^↳|started\.$|✔ (Test|Suite) .* passed' "$log" || true
# Without the line at the end of a run, the run did not come to its end.
run=$(sed -nE 's/.*Test run with ([0-9]+) tests? .*/\1/p' "$log")
failed=$(grep -cE '^✘ Test .* failed after' "$log" || true)
[ -n "$run" ] || status=1
# What valgrind finds is no one test's.
[ $status = 0 ] || [ "$failed" != 0 ] || failed=${run:-0}
echo "reliability: unit tests under valgrind: ${run:-0} tried, $((${run:-0} - failed)) survived"
exit $status
