#!/usr/bin/env bash
# Builds the library for Android 7 (API 24) and later, with SQLite, libsodium and jansson inside:
# FOLDER/jniLibs/{arm64-v8a,x86_64}/libholdfast.so, and the same with their symbols in FOLDER/symbols.
# Usage: ANDROID_NDK_HOME=... build.sh [FOLDER]; the default is build/android. Needs Swift 6.3, no Swift SDK.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
folder=$(realpath -m "${1:-build/android}")
api=24

stop() { echo "bindings/android/build.sh: $1" >&2; exit 1; }
[ -n "${ANDROID_NDK_HOME:-}" ] ||
  stop "ANDROID_NDK_HOME must name the folder of an Android NDK (r27 or newer); it is not set"
tools=$(echo "$ANDROID_NDK_HOME"/toolchains/llvm/prebuilt/*/bin)
[ -x "$tools/clang" ] || stop "$ANDROID_NDK_HOME holds no NDK: there is no toolchains/llvm/prebuilt/*/bin/clang in it"
sysroot=$(dirname "$tools")/sysroot
export SWIFTC=${SWIFTC:-swiftc}
command -v "$SWIFTC" > /dev/null || stop "$SWIFTC is not on the PATH: install Swift 6.3, https://www.swift.org/install"
SMALL=$(make --no-print-directory -s print-SMALL)
export SMALL

# Objects are for bare metal: Embedded Swift has no standard library for Android, and the ABI is the same.
swift_target() { case $1 in arm64-v8a) echo aarch64-none-none-elf ;; x86_64) echo x86_64-unknown-none-elf ;; esac; }
machine() { case $1 in arm64-v8a) echo aarch64 ;; x86_64) echo x86_64 ;; esac; }
# Android's C library does not allow malloc_usable_size() with the third level of checked buffers.
hardened() {
  echo -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
  case $1 in arm64-v8a) echo -mbranch-protection=standard -mno-outline-atomics ;; x86_64) echo -fcf-protection ;; esac
}

build() {
  local abi=$1 triple work wrapped=free
  triple=$(machine "$abi")-linux-android
  work=$PWD/.build/android/$abi
  mkdir -p "$work" "$folder/jniLibs/$abi" "$folder/symbols/$abi"
  printf '#!/bin/sh\nexec "%s" --target=%s --sysroot=%s "$@"\n' "$tools/clang" "$triple$api" "$sysroot" > "$work/cc"
  chmod +x "$work/cc"
  # The libraries of an earlier run stay; their licences are copied last.
  [ -d "$work/bundle/licenses" ] || CC=$work/cc AR=$tools/llvm-ar RANLIB=$tools/llvm-ranlib FLAGS=$(hardened "$abi" | tr '\n' ' ') \
    SQLITE_FLAGS=-Os SOURCES=$PWD/.build/bundle/sources bindings/bundle/dependencies.sh "$work/bundle" "$triple"
  mk/cross.sh swift "$work/swift" "$(swift_target "$abi")" - -isystem "$work/bundle/include" --sysroot="$sysroot" \
    -isystem "$sysroot/usr/include/$triple" -isystem "$sysroot/usr/include" \
    -D__linux__=1 -D__ANDROID__=1 -D__ANDROID_API__=$api -D__ANDROID_MIN_SDK_VERSION__=$api -D_GNU_SOURCE
  # shellcheck disable=SC2046 # options are words
  mk/cross.sh c "$work/c" - "$work/cc" -isystem "$work/bundle/include" $(hardened "$abi")
  echo 'HOLDFAST_1 { global: holdfast_*; local: *; };' > "$work/holdfast.map"
  # Embedded Swift on arm64 uses bits of the pointers to its blocks (Sources/CPlatform/memory.c).
  [ "$abi" != arm64-v8a ] || wrapped=free,--wrap=posix_memalign
  # Pages of 16 kB; relocations that Android 6 and later read.
  "$work/cc" -shared -fuse-ld=lld -o "$folder/symbols/$abi/libholdfast.so" "$work"/swift/*.o "$work"/c/*.o \
    "$work"/bundle/lib/*.a -lm -Wl,--wrap=$wrapped,--defsym=platform_bundled=1,-soname,libholdfast.so \
    -Wl,--version-script="$work/holdfast.map",--gc-sections,--icf=all,--build-id=sha1,--pack-dyn-relocs=android \
    -Wl,-z,nodelete,-z,defs,-z,relro,-z,now,-z,text,-z,max-page-size=16384,-z,common-page-size=16384
  "$tools/llvm-objcopy" --strip-all "$folder/symbols/$abi/libholdfast.so" "$folder/jniLibs/$abi/libholdfast.so"
  python3 "$here/check.py" "$folder/jniLibs/$abi/libholdfast.so"
}

for abi in arm64-v8a x86_64; do build $abi; done
cp .build/android/arm64-v8a/bundle/licenses/* "$folder/"
