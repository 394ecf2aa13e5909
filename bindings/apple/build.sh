#!/usr/bin/env bash
# Builds two frameworks for iOS, its simulator and macOS, all arm64. Needs Xcode, and Swift 6.3 from swift.org, whose
# Embedded Swift has standard libraries for these systems. Usage: SOURCES=... build.sh [FOLDER]; the default is build/apple.
#
#   FOLDER/Holdfast.xcframework           the library, with SQLite, libsodium and jansson inside; Package.swift beside it
#                                         makes it a Swift package
#   FOLDER/HoldfastLibraries.xcframework  libsodium and jansson, static: in build/apple, the project's own Package.swift
#                                         uses it, so that Xcode builds the core from source without Homebrew
#
# SOURCES names the folder that bindings/bundle/sources.sh fills on a Debian machine.
#
# Written, not run: no such machine was at hand. What `make darwin` compiles on Linux is the same code.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
mkdir -p "${1:-build/apple}"
folder=$(cd "${1:-build/apple}" && pwd)

stop() { echo "bindings/apple/build.sh: $1" >&2; exit 1; }
command -v xcodebuild > /dev/null || stop "xcodebuild is missing: this needs macOS with Xcode"
for package in sqlite3 libsodium jansson; do
  [ -e "${SOURCES:-}/$package.dsc" ] ||
    stop "SOURCES must name a folder with $package: run bindings/bundle/sources.sh FOLDER on Debian and copy FOLDER"
done
export SOURCES SWIFTC=${SWIFTC:-swiftc}
SMALL=$(make --no-print-directory -s print-SMALL)
export SMALL
version=$(sed -n 's/.*"\(.*\)".*/\1/p' Sources/Base/Version.swift)

# framework SDK TARGET: prints the path of the framework for it.
framework() {
  local sdk=$1 target=$2 root work bundle contents
  root=$(xcrun --sdk "$sdk" --show-sdk-path)
  work=$PWD/.build/apple/$sdk bundle=$folder/$sdk/Holdfast.framework
  mkdir -p "$work"
  printf '#!/bin/sh\nexec "%s" -target %s -isysroot "%s" "$@"\n' "$(xcrun --sdk "$sdk" -f clang)" "$target" "$root" > "$work/cc"
  chmod +x "$work/cc"
  [ -d "$work/bundle/licenses" ] || CC=$work/cc AR=$(xcrun -f ar) RANLIB=$(xcrun -f ranlib) \
    bindings/bundle/dependencies.sh "$work/bundle" aarch64-apple-darwin >&2
  # libsodium and jansson for the package from source.
  rm -rf "$work/libraries"
  mkdir -p "$work/libraries"
  cp -R "$work/bundle/include" "$work/libraries/Headers"
  rm "$work/libraries/Headers/sqlite3.h"
  cp bindings/apple/libraries.modulemap "$work/libraries/Headers/module.modulemap"
  xcrun libtool -static -o "$work/libraries/libHoldfastLibraries.a" "$work"/bundle/lib/{libsodium,libjansson}.a >&2
  mk/cross.sh swift "$work/swift" "$target" - -isysroot "$root" -isystem "$work/bundle/include" >&2
  mk/cross.sh c "$work/c" - "$work/cc" -isystem "$work/bundle/include" >&2
  # As --defsym does elsewhere: the three libraries are inside (Sources/CPlatform/build.c).
  echo 'const char platform_bundled[] = "";' > "$work/bundled.c"
  "$work/cc" -c -fvisibility=hidden -o "$work/c/bundled.o" "$work/bundled.c"
  rm -rf "$bundle"
  contents=$bundle
  # macOS keeps versions of a framework; iOS has one.
  [ "$sdk" != macosx ] || contents=$bundle/Versions/A
  mkdir -p "$contents/Headers" "$contents/Modules"
  # Exports the functions of the header alone. The free() of Sources/CPlatform/memory.c is this library's.
  "$work/cc" -dynamiclib -o "$contents/Holdfast" "$work"/swift/*.o "$work"/c/*.o "$work"/bundle/lib/*.a \
    -Wl,-exported_symbol,'_holdfast_*' -Wl,-dead_strip -Wl,-no_weak_imports \
    -install_name "@rpath/${contents#"$folder/$sdk/"}/Holdfast"
  nm -m "$contents/Holdfast" | grep -q 'undefined.* _free ' && stop "$sdk: the system's free() is called without zeroing"
  xcrun dsymutil "$contents/Holdfast" -o "$folder/$sdk/Holdfast.framework.dSYM" >&2
  xcrun strip -x "$contents/Holdfast"
  cp include/holdfast.h "$contents/Headers/"
  printf 'framework module Holdfast {\n  header "holdfast.h"\n  export *\n}\n' > "$contents/Modules/module.modulemap"
  plist "$sdk" > "$work/Info.plist"
  if [ "$sdk" = macosx ]; then
    mkdir "$contents/Resources"
    cp "$work/Info.plist" "$work"/bundle/licenses/* "$contents/Resources/"
    ln -s A "$bundle/Versions/Current"
    for part in Holdfast Headers Modules Resources; do ln -s "Versions/Current/$part" "$bundle/$part"; done
  else
    cp "$work/Info.plist" "$work"/bundle/licenses/* "$contents/"
  fi
  echo "$bundle"
}

plist() {
  local system=MacOSX minimum=LSMinimumSystemVersion
  case $1 in iphoneos) system=iPhoneOS ;; iphonesimulator) system=iPhoneSimulator ;; esac
  [ "$1" = macosx ] || minimum=MinimumOSVersion
  cat << END
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
  <key>CFBundleExecutable</key><string>Holdfast</string>
  <key>CFBundleIdentifier</key><string>org.holdfast.Holdfast</string>
  <key>CFBundleName</key><string>Holdfast</string>
  <key>CFBundlePackageType</key><string>FMWK</string>
  <key>CFBundleShortVersionString</key><string>$version</string>
  <key>CFBundleVersion</key><string>$version</string>
  <key>CFBundleSupportedPlatforms</key><array><string>$system</string></array>
  <key>$minimum</key><string>$([ "$1" = macosx ] && echo 14.0 || echo 18.0)</string>
</dict></plist>
END
}

ios=$(framework iphoneos arm64-apple-ios18.0)
simulator=$(framework iphonesimulator arm64-apple-ios18.0-simulator)
macos=$(framework macosx arm64-apple-macos14.0)
rm -rf "$folder"/{Holdfast,HoldfastLibraries}.xcframework
xcodebuild -create-xcframework -framework "$ios" -framework "$simulator" -framework "$macos" \
  -output "$folder/Holdfast.xcframework"
cp bindings/apple/Package.swift "$folder/"
libraries=()
for sdk in iphoneos iphonesimulator macosx; do
  libraries+=(-library "$PWD/.build/apple/$sdk/libraries/libHoldfastLibraries.a"
    -headers "$PWD/.build/apple/$sdk/libraries/Headers")
done
xcodebuild -create-xcframework "${libraries[@]}" -output "$folder/HoldfastLibraries.xcframework"
