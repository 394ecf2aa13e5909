#!/usr/bin/env bash
# Runs the tests of the JVM binding. Usage: run.sh JARS WORK [PART OF A CLASS NAME, for instance KeysTest]
set -euo pipefail
cd "$(dirname "$0")/../../.."
out=$1 work=$2
shift 2
. bindings/jvm/tests/compile.sh "$out" "$work"
# -Xcheck:jni prints what the natives do wrong, and goes on. run.py makes that a failure.
exec env PYTHONPATH=Tests/server .venv/bin/python bindings/jvm/tests/run.py \
  "$java_home/bin/java" -Xcheck:jni -Xmx512m -ea -cp "$tests_path" -Dholdfast.classes="$work" \
  org.junit.platform.console.ConsoleLauncher --disable-banner --disable-ansi-colors --fail-if-no-tests --details=tree \
  --select-package org.holdfast --include-classname ".*${1:-Test}.*"
