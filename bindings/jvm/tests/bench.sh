#!/usr/bin/env bash
# What a call through the JVM binding costs over its native. Usage: bench.sh JARS WORK
set -euo pipefail
cd "$(dirname "$0")/../../.."
. bindings/jvm/tests/compile.sh "$1" "$2"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$java_home/bin/java" -cp "$tests_path" org.holdfast.Bench "$folder" "${CALLS:-4000}"
