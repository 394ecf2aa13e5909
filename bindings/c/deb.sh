#!/usr/bin/env bash
# Builds the Debian package `holdfast`: the files of `make install` below /usr, for the system and processor it runs on. Prints
# its path. Usage: deb.sh FOLDER. Environment: VERSION, ABI.
set -euo pipefail
folder=$(mkdir -p "$1" && realpath "$1")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
libraries=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
tree=$work/debian/holdfast

PREFIX=/usr LIBDIR=$libraries DESTDIR=$tree bindings/c/install.sh
install -D -m 644 LICENSE "$tree/usr/share/doc/holdfast/copyright"
# The Debian packages whose libraries these load, with the oldest versions that have the symbols; the driver and the key
# stores load libraries of this package as well.
printf 'Source: holdfast\n\nPackage: holdfast\nArchitecture: any\n' > "$work/debian/control"
needed=$(cd "$work" && dpkg-shlibdeps -O --ignore-missing-info "debian/holdfast$libraries"/*.so 2> "$work/warnings") ||
  { cat "$work/warnings" >&2; exit 1; }

mkdir "$tree/DEBIAN"
cat > "$tree/DEBIAN/control" << END
Package: holdfast
Version: $VERSION
Architecture: $(dpkg --print-architecture)
Maintainer: The developers of Holdfast
Section: libs
Depends: ${needed#shlibs:Depends=}
Installed-Size: $(du -sk "$tree/usr" | cut -f1)
Description: sessions, tenants, an offline queue and an encrypted cache for apps on Supabase
 The library libholdfast.so.$ABI, its HTTP driver and key stores, with the headers, pkg-config and CMake files to build against.
END
# The postinst of a package with shared libraries.
printf 'activate-noawait ldconfig\n' > "$tree/DEBIAN/triggers"
dpkg-deb --root-owner-group --build "$tree" "$folder" > /dev/null
echo "$folder/holdfast_${VERSION}_$(dpkg --print-architecture).deb"
