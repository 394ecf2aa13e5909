#!/usr/bin/env bash
# `unit.sh VALGRIND...`: the unit tests under valgrind, optimised, because valgrind takes fifty times as long.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p build/valgrind
swift build -c release --build-tests --disable-xctest -Xswiftc -enable-testing --scratch-path .build-valgrind \
  > build/valgrind/build.log 2>&1 || { tail -30 build/valgrind/build.log; exit 1; }
# Strip line numbers: Debian 12's valgrind cannot read Swift's DWARF.
strip -g -o build/valgrind/unit-tests .build-valgrind/release/HoldfastPackageTests.xctest
cc -shared -fPIC -O1 -Wall -Wextra -Werror -o build/valgrind/sigsuspend.so Tests/sanitizers/sigsuspend.c
status=0 log=build/valgrind/unit.log
# One test after the other, because valgrind runs one thread at a time. Swift's crash report reads invalid memory.
LD_PRELOAD=$PWD/build/valgrind/sigsuspend.so SWIFT_BACKTRACE=enable=no "$@" build/valgrind/unit-tests \
  --testing-library swift-testing --quiet --no-parallel ${UNIT_FILTER:+--filter "$UNIT_FILTER"} \
  > "$log" 2>&1 || status=$?
[ $status = 0 ] || cat "$log"
# The closing line. A run without it did not reach its end.
grep 'Test run with' "$log" || status=1
run=$(sed -nE 's/.*Test run with ([0-9]+) tests? .*/\1/p' "$log")
# Count a test once, however many issues it has.
failed=$(grep -oE 'Test [^ ]+.* recorded an issue' "$log" | sort -u | wc -l || true)
# An error that valgrind reports belongs to no single test: all count as failed.
[ $status = 0 ] || [ "${failed:-0}" != 0 ] || failed=${run:-0}
echo "reliability: unit tests under valgrind: ${run:-0} tried, $((${run:-0} - ${failed:-0})) survived"
exit $status
