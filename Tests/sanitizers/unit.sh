#!/usr/bin/env bash
# The unit tests under a checker: `unit.sh VALGRIND...`. The one test that walks through every situation
# there is takes seconds natively and hours here; the same code is reached by the tests beside it.
set -euo pipefail
cd "$(dirname "$0")/../.."
swift build --build-tests --disable-xctest --scratch-path .build-test > build/unit-build.log 2>&1 || { tail -30 build/unit-build.log; exit 1; }
"$@" .build-test/debug/HoldfastPackageTests.xctest --testing-library swift-testing --no-parallel \
  --skip WholeProduct 2>&1 | grep -vE '^◇|started\.$|✔ (Test|Suite) .* passed'
