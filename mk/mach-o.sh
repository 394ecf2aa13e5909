#!/usr/bin/env bash
# Checks that every module and C file of the core was compiled to a Mach-O object for arm64. mach-o.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1 found=0
expected=$(sed -n 's/^modules="\(.*\)"$/\1/p' mk/cross.sh | wc -w)
for object in "$folder"/swift/*.o "$folder"/c/*.o; do
  # MH_MAGIC_64 and CPU_TYPE_ARM64, both in little-endian order (mach-o/loader.h, mach/machine.h)
  case $(od -An -tx1 -N8 "$object" | tr -d ' ') in cffaedfe0c000001) found=$((found + 1)) ;; esac
done
for file in Sources/CPlatform/*.c Sources/COperations/*.c; do [ -f "$file" ] && expected=$((expected + 1)); done
echo "objects for ${folder##*/}: $found of $expected"
[ "$found" = "$expected" ]
