#!/usr/bin/env bash
# `make install` runs this script. It copies what was built to DESTDIR/PREFIX, with its pkg-config and CMake files.
# Environment: PREFIX, LIBDIR, DESTDIR, VERSION, ABI.
set -euo pipefail
cd "$(dirname "$0")/../.."

include=$DESTDIR$PREFIX/include
libraries=$DESTDIR$LIBDIR

fill() {
  sed -e "s|@PREFIX@|$PREFIX|; s|@LIBDIR@|$LIBDIR|; s|@VERSION@|$VERSION|; s|@ABI@|$ABI|" \
    -e "s|@INCLUDE@|$(realpath -m --relative-to="$LIBDIR" "$PREFIX/include")|" "bindings/c/$1.in" > "$2/$1"
  chmod 644 "$2/$1"
}

install -d "$include" "$DESTDIR$PREFIX/share/holdfast" "$libraries/pkgconfig" "$libraries/cmake/holdfast"
install -m 644 build/include/*.h "$include"
install -m 644 build/include/holdfast.schema.json build/include/holdfast.openrpc.json "$DESTDIR$PREFIX/share/holdfast"
# The linker opens libholdfast.so, programs open libholdfast.so.1. Both are links to the file of this version.
# The driver is not built where libcurl is missing.
parts=(holdfast holdfast_keys)
[ ! -e build/lib/libholdfast_http.so ] || parts+=(holdfast_http)
for part in "${parts[@]}"; do
  name=lib$part
  install -m 755 "build/lib/$name.so" "$libraries/$name.so.$VERSION"
  ln -sf "$name.so.$VERSION" "$libraries/$name.so.$ABI"
  ln -sf "$name.so.$ABI" "$libraries/$name.so"
  install -m 644 "build/lib/$name.a" "$libraries"
  fill "$part.pc" "$libraries/pkgconfig"
done
for file in holdfast-config.cmake holdfast-config-version.cmake; do fill "$file" "$libraries/cmake/holdfast"; done
if [ -z "$DESTDIR" ] && [ "$(id -u)" = 0 ]; then ldconfig; fi
