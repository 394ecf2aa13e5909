#!/usr/bin/env bash
# Builds libcurl for musl from Debian's sources, for the tour alone: HTTP without TLS, in FOLDER/lib/libcurl.a, and its
# headers in FOLDER/include. Usage: musl-curl.sh FOLDER HOST
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mkdir -p "$1" && cd "$1" && pwd)
host=$2
bindings/bundle/sources.sh "$folder/sources" curl
rm -rf "$folder/build"
cp -r "$folder/sources/curl" "$folder/build"
trap 'tail -n 15 "$folder/log" | cut -c 1-200 >&2' ERR
{
  cd "$folder/build"
  ./configure CC=musl-gcc CFLAGS=-O1 --host="$host" --prefix="$folder" --disable-shared --enable-static --with-pic \
    --disable-dependency-tracking --without-ssl --without-zlib --without-brotli --without-zstd --without-nghttp2 \
    --without-libidn2 --without-libpsl --without-librtmp --without-libssh2 --disable-ldap --disable-ldaps --disable-ftp \
    --disable-file --disable-dict --disable-telnet --disable-tftp --disable-pop3 --disable-imap --disable-smb \
    --disable-smtp --disable-gopher --disable-mqtt --disable-rtsp --disable-manual
  make -j2 -C lib install
  make -C include install
} > "$folder/log" 2>&1
rm -rf "$folder/build"
