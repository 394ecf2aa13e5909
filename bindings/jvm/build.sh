#!/usr/bin/env bash
# Builds the jars of the JVM binding. Usage: build.sh LIBRARIES OUT WORK
#   LIBRARIES  the folder with libholdfast.so.1, which goes into the jar
#   OUT        holdfast.jar (Java 17), holdfast-okhttp.jar, holdfast-kotlin.jar
#   WORK       class files, and Kotlin's compiler
# `make jvm` calls it. JARS is the folder of Debian's jars, JAVA_HOME the JDK.
set -euo pipefail
cd "$(dirname "$0")/../.."
libraries=$1 out=$2 work=$3
here=bindings/jvm
jars=${JARS:-/usr/share/java}
annotations=$jars/org.jetbrains.annotations-common.jar
java_home=${JAVA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")}
warnings=-Xlint:all,-options,-path,-classfile
mkdir -p "$out" "$work"

# compile CLASSES RELEASE CLASSPATH SOURCES...
compile() {
  local classes=$work/$1 release=$2 path=$3
  shift 3
  rm -rf "$classes"
  find "$@" -name '*.java' -print0 | LC_ALL=C sort -z | xargs -0 \
    "$java_home/bin/javac" $warnings -Werror --release "$release" -g -encoding UTF-8 -cp "$path" -d "$classes"
}

# Java 8: what Android 7 has, without a conversion of its libraries.
compile core 8 "$jars/gson.jar:$annotations" $here/java $here/generated/java
compile jdk 17 "$work/core:$annotations" $here/jdk
compile okhttp 8 "$work/core:$jars/okhttp.jar:$jars/okio.jar:$annotations" $here/okhttp

natives=$work/core/org/holdfast/native/linux-$(uname -m)
mkdir -p "$natives"
cp -L "$libraries/libholdfast.so.1" "$natives/"
cc -std=c11 -O2 -shared -fPIC -fvisibility=hidden -Wall -Wextra -Werror -D_FORTIFY_SOURCE=2 -fstack-protector-strong \
  -Iinclude -I"$java_home/include" -I"$java_home/include/linux" -o "$natives/libholdfast_jni.so" \
  $here/native/holdfast_jni.c "$natives/libholdfast.so.1" \
  -Wl,-rpath,'$ORIGIN' -Wl,-soname,libholdfast_jni.so -Wl,-z,relro,-z,now,-z,defs -s

# Kotlin. The wheel's jar with everything has the compiler and kotlinx-coroutines; only the compilation sees it.
. $here/kotlin-compiler.sh "$work"
rm -rf "$work/kotlin"
"$java_home/bin/java" -cp "$KOTLIN_COMPILER" org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -Werror -language-version 2.1 \
  -api-version 2.1 -jvm-target 1.8 -no-stdlib -no-reflect -module-name holdfast-kotlin -cp "$work/core:$KOTLIN_LIBRARIES" \
  -d "$work/kotlin" $here/kotlin $here/generated/kotlin

# jar NAME CLASSES... ; the same input makes the same file.
pack() {
  local file=$out/$1.jar
  shift
  local folders=()
  for classes; do folders+=(-C "$work/$classes" .); done
  rm -f "$file"
  "$java_home/bin/jar" --create --file "$file" --date 2026-01-01T00:00:00Z -C "$work/license" . "${folders[@]}"
}
mkdir -p "$work/license/META-INF"
cp LICENSE "$work/license/META-INF/LICENSE"
for license in "$libraries"/LICENSE.*; do [ ! -e "$license" ] || cp "$license" "$work/license/META-INF/"; done
pack holdfast core jdk
rm -rf "$work/license/META-INF"
mkdir -p "$work/license/META-INF"
cp LICENSE "$work/license/META-INF/LICENSE"
pack holdfast-okhttp okhttp
pack holdfast-kotlin kotlin
