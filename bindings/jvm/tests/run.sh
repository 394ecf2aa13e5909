#!/usr/bin/env bash
# Runs the tests of the JVM binding. Usage: run.sh JARS WORK [PART OF A CLASS NAME, for instance KeysTest]
set -euo pipefail
cd "$(dirname "$0")/../../.."
out=$1 work=$2
shift 2
jars=${JARS:-/usr/share/java}
java_home=${JAVA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")}
. bindings/jvm/kotlin-compiler.sh "$work"
libraries=$out/holdfast.jar:$out/holdfast-okhttp.jar:$jars/gson.jar:$jars/okhttp.jar:$jars/okio.jar
for name in junit-jupiter-api junit-jupiter-engine junit-jupiter-params junit-platform-commons junit-platform-engine \
  junit-platform-launcher junit-platform-console junit-platform-reporting picocli opentest4j apiguardian-api; do
  libraries=$libraries:$jars/$name.jar
done
annotations=$jars/org.jetbrains.annotations-common.jar
rm -rf "$work/tests" "$work/stubs" "$work/android" "$work/tests-kotlin" "$work/readme"
.venv/bin/python bindings/jvm/tests/readme.py "$work/readme"
# Android's own classes are not to be had here: stubs.txt declares those that the sources use, a file after each ==>.
awk -v to="$work/stubs/" '/^==> / { file = to $2; folder = $2; sub("/[^/]*$", "", folder); system("mkdir -p " to folder)
  gsub("/", ".", folder); print "package " folder ";" > file; next } file { print > file }' bindings/android/tests/stubs.txt
find bindings/android/src "$work/stubs" -name '*.java' -print0 2> /dev/null | xargs -0 -r \
  "$java_home/bin/javac" -Xlint:all,-options,-path,-classfile,-processing -Werror --release 8 -cp "$libraries:$annotations" -d "$work/android"
mkdir -p "$work/android"
find bindings/jvm/tests/java "$work/readme" bindings/android/tests/java -name '*.java' -print0 2> /dev/null | xargs -0 \
  "$java_home/bin/javac" -Xlint:all,-path,-classfile,-processing,-try,-serial -Werror -cp "$libraries:$annotations:$work/android" -d "$work/tests"
"$java_home/bin/java" -cp "$KOTLIN_COMPILER" org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -language-version 2.1 -api-version 2.1 \
  -jvm-target 17 -no-stdlib -no-reflect -cp "$work/tests:$out/holdfast-kotlin.jar:$libraries:$KOTLIN_LIBRARIES" \
  -d "$work/tests-kotlin" bindings/jvm/tests/kotlin "$work"/readme/*.kt examples/kotlin
tests_path=$work/tests:$work/tests-kotlin:$work/android:$out/holdfast-kotlin.jar:$libraries:$KOTLIN_LIBRARIES
# -Xcheck:jni prints what the natives do wrong, and goes on. beside_backend.py makes that a failure.
exec .venv/bin/python Tests/server/beside_backend.py \
  "$java_home/bin/java" -Xcheck:jni -Xms256m -Xmx256m -XX:+AlwaysPreTouch -ea -cp "$tests_path" -Dholdfast.classes="$work" \
  org.junit.platform.console.ConsoleLauncher --disable-banner --disable-ansi-colors --fail-if-no-tests --details=tree \
  --select-package org.holdfast --include-classname ".*${1:-Test}.*"
