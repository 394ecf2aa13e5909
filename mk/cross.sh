#!/usr/bin/env bash
# Compiles the core in Embedded Swift for another processor or system, which SwiftPM cannot: one object for each
# module and C file in FOLDER. Usage: cross.sh swift|c FOLDER SWIFT-TARGET CC [FLAG...]
#
# CC compiles C for the target. FLAGs are for it and for the C importer of Swift: the target's headers.
# SWIFTC and SMALL name Swift's compiler and its options for size.
set -euo pipefail
cd "$(dirname "$0")/.."
part=$1 folder=$2 target=$3 cc=$4
shift 4

# What Package.swift builds the library from, each after the modules that it uses (Tests/packages holds it to that).
modules="Base Vault Store Policy Supabase Engine Holdfast"
c_modules="Sources/CSQLite Sources/CSodium Sources/CJansson include"

compile_swift() {
  local importer=() flag module
  for flag in -fPIC -DHOLDFAST_EMBEDDED "$@"; do importer+=(-Xcc "$flag"); done
  for module in $c_modules; do importer+=(-Xcc "-fmodule-map-file=$module/module.modulemap"); done
  printf 'module CPlatform {\n  header "%s/Sources/CPlatform/include/platform.h"\n  export *\n}\n' "$PWD" \
    > "$folder/modules/CPlatform.modulemap"
  importer+=(-Xcc "-fmodule-map-file=$folder/modules/CPlatform.modulemap")
  for module in $modules; do
    # shellcheck disable=SC2046,SC2086 # options and files are words
    $SWIFTC -target "$target" -swift-version 6 -wmo -parse-as-library $SMALL \
      -enable-experimental-feature Embedded -enable-upcoming-feature ExistentialAny \
      -enable-upcoming-feature InternalImportsByDefault "${importer[@]}" \
      -I "$folder/modules" -module-name "$module" -emit-module-path "$folder/modules/$module.swiftmodule" \
      -c -o "$folder/$module.o" $(find "Sources/$module" -name '*.swift' | LC_ALL=C sort)
  done
}

compile_c() {
  local file
  for file in Sources/CPlatform/*.c Sources/COperations/*.c; do
    $cc -c -fPIC -O2 -g -ffunction-sections -fstack-protector-strong -Wall -Wextra -Werror -D_FORTIFY_SOURCE=3 \
      -DHOLDFAST_EMBEDDED "$@" -ISources/CPlatform/include -Iinclude -o "$folder/$(basename "$file" .c).o" "$file"
  done
}

mkdir -p "$folder/modules"
rm -f "$folder"/*.o
"compile_$part" "$@"
