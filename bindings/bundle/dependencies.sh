#!/usr/bin/env bash
# Builds SQLite, libsodium and jansson from Debian's sources as position-independent static libraries with hidden
# symbols, FOLDER/lib/*.a, and their headers, FOLDER/include. Usage: dependencies.sh FOLDER [HOST].
# For another system, HOST is its GNU name; CC, AR, RANLIB and FLAGS are its compiler, its tools and further options of
# the compiler; SQLITE_FLAGS are for SQLite alone. SOURCES names a folder with sources that were fetched before.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
folder=$(mkdir -p "$1/lib" "$1/include" "$1/build" && cd "$1" && pwd)
sources=${SOURCES:-$folder/sources}
"$here/sources.sh" "$sources"

host=${2:-}
export CC=${CC:-cc} AR=${AR:-ar} RANLIB=${RANLIB:-ranlib}
# One section per function and object, so that the linker can drop unused code.
flags="-O2 -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections -fno-plt -D_FORTIFY_SOURCE=3 -fstack-protector-strong"
if [ -n "$host" ]; then
  flags="$flags ${FLAGS:-}"
elif [ "$(uname -m)" = x86_64 ]; then
  flags="$flags -fcf-protection"
fi

# The options that SQLite's authors recommend when nothing needs the omitted parts; threads and FTS5 stay.
# MEMSTATUS=0 avoids a process-wide mutex per allocation. Options that a hostile database file could exploit are off:
# double-quoted strings, trusted schemas, loadable extensions.
sqlite_options="-DSQLITE_DQS=0 -DSQLITE_ENABLE_FTS5 -DSQLITE_DEFAULT_MEMSTATUS=0 -DSQLITE_THREADSAFE=1 -DSQLITE_MAX_WORKER_THREADS=0
  -DSQLITE_TRUSTED_SCHEMA=0 -DSQLITE_SECURE_DELETE -DSQLITE_LIKE_DOESNT_MATCH_BLOBS -DSQLITE_MAX_EXPR_DEPTH=0
  -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_OMIT_DEPRECATED -DSQLITE_OMIT_SHARED_CACHE -DSQLITE_OMIT_PROGRESS_CALLBACK
  -DSQLITE_OMIT_DECLTYPE -DSQLITE_OMIT_JSON -DHAVE_USLEEP=1 -DHAVE_FDATASYNC=1"

# Builds in a copy, so that an interrupted build leaves the sources unchanged.
fresh() {
  rm -rf "$folder/build/$1"
  cp -r "$sources/$1" "$folder/build/$1"
  cd "$folder/build/$1"
}

build_sqlite() {
  fresh sqlite3
  # One file, the same for every system: a compiler of this machine makes the tools that write it.
  CC=cc ./configure --disable-tcl --disable-readline
  CC=cc make sqlite3.c
  # shellcheck disable=SC2086 # flags are words
  $CC $flags ${SQLITE_FLAGS:-} $sqlite_options -c sqlite3.c -o sqlite3.o
  $AR rcs "$folder/lib/libsqlite3.a" sqlite3.o
  cp sqlite3.h "$folder/include/"
}

build_libsodium() {
  fresh libsodium
  autoreconf -i
  ./configure ${host:+--host="$host"} --disable-shared --enable-static --with-pic --disable-dependency-tracking CFLAGS="$flags"
  make -j2 -C src/libsodium libsodium.la
  cp src/libsodium/.libs/libsodium.a "$folder/lib/"
  cp -r src/libsodium/include/sodium.h src/libsodium/include/sodium "$folder/include/"
}

build_jansson() {
  fresh jansson
  autoreconf -i
  ./configure ${host:+--host="$host"} --disable-shared --enable-static --with-pic --disable-dependency-tracking CFLAGS="$flags"
  make -C src libjansson.la
  cp src/.libs/libjansson.a "$folder/lib/"
  cp src/jansson.h src/jansson_config.h "$folder/include/"
}

trap 'tail -n 15 "$folder"/*.log | cut -c 1-200 >&2' ERR
# SQLite builds in parallel, because it takes as long as the other two together.
(build_sqlite) > "$folder/sqlite.log" 2>&1 &
(build_libsodium) > "$folder/libsodium.log" 2>&1
(build_jansson) > "$folder/jansson.log" 2>&1
wait $!

# The licences of libsodium and jansson require a copy; SQLite is in the public domain.
mkdir -p "$folder/licenses"
for library in libsodium jansson; do
  cp "$sources/$library/LICENSE" "$folder/licenses/LICENSE.$library"
done
rm -r "$folder/build"
