#!/usr/bin/env bash
# What a call through the JVM binding costs over the call in C, from the same library. Usage: bench.sh JARS WORK
set -euo pipefail
cd "$(dirname "$0")/../../.."
. bindings/jvm/tests/compile.sh "$1" "$2"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cc -std=gnu11 -O2 -Wall -Wextra -Werror -Iinclude -o "$folder/bench" bindings/jvm/tests/bench.c build/lib-bundled/libholdfast.so \
  -Wl,-rpath,"$PWD/build/lib-bundled"
calls=${CALLS:-4000}
read -r small large <<< "$("$folder/bench" "$folder/c" "$calls")"
read -r java_small java_large <<< "$("$java_home/bin/java" -cp "$tests_path" org.holdfast.Bench "$folder/java" "$calls")"
awk -v small="$small" -v large="$large" -v java_small="$java_small" -v java_large="$java_large" 'BEGIN {
  printf "%-36s %9s %9s %9s\n", "microseconds per call", "C", "JVM", "over C"
  printf "%-36s %9.1f %9.1f %9.1f\n", "network_set (empty reply)", small / 1000, java_small / 1000, (java_small - small) / 1000
  printf "%-36s %9.1f %9.1f %9.1f\n", "session_status (a typed reply)", large / 1000, java_large / 1000, (java_large - large) / 1000
  print "target: 10 over C"
}'
