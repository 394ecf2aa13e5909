# The desktop app: examples/desktop.
#
#   desktop         starts it on the local backend with its demo people, and a panel beside it
#   test-desktop    its tests, under Xvfb and over the accessibility tree
#   pictures        draws docs/pictures under Xvfb

.PHONY: desktop setup-desktop test-desktop install-desktop pictures

APT_DESKTOP := libadwaita-1-dev libglib2.0-dev libsecret-1-dev gnome-keyring dbus adwaita-icon-theme librsvg2-common \
  python3-gi gir1.2-adw-1
APT_DESKTOP_TESTS := $(APT_DESKTOP) libsecret-tools gir1.2-atspi-2.0 at-spi2-core xvfb xdotool imagemagick fonts-cantarell \
  desktop-file-utils appstream

DESKTOP_SOURCES := $(wildcard examples/desktop/src/*)
DESKTOP_SCREENS := $(wildcard examples/desktop/ui/*) examples/desktop/data/org.holdfast.Desktop.svg
DESKTOP_FLAGS := -std=gnu11 -DG_LOG_DOMAIN='"holdfast-desktop"' -g -Wall -Wextra -Werror -Iinclude -ISources/HoldfastHTTP/include

setup-desktop:
	@mkdir -p .build
	@mk/install-packages.sh $(APT_DESKTOP)

.build/desktop/resources.c: $(DESKTOP_SCREENS)
	@mkdir -p $(@D)
	@glib-compile-resources --generate-source --target=$@ --sourcedir=examples/desktop/ui examples/desktop/ui/desktop.gresource.xml

build/bin/holdfast-desktop: $(DESKTOP_SOURCES) .build/desktop/resources.c include/holdfast.h $(HTTP_HEADERS) \
    build/lib/libholdfast.so build/lib/libholdfast_http.so
	@mkdir -p $(@D)
	@$(CLANG) $(DESKTOP_FLAGS) -O1 $(SANITIZE) -o $@ $(wildcard examples/desktop/src/*.c) .build/desktop/resources.c \
	  $$(pkg-config --cflags --libs libadwaita-1 libsecret-1 jansson) -Lbuild/lib -lholdfast -lholdfast_http \
	  -Wl,-rpath,'$$ORIGIN/../lib'

# In other makes, which see what was installed.
desktop: setup setup-desktop
	@$(AGAIN) build/bin/holdfast-desktop
	@/usr/bin/python3 examples/desktop/panel/panel.py build/bin/holdfast-desktop

test-desktop: | $(PYTHON)
	@mkdir -p .build
	@mk/install-packages.sh $(APT_DESKTOP_TESTS)
	@$(AGAIN) build/bin/holdfast-desktop
	@$(PYTEST) Tests/desktop

install-desktop: build/bin/holdfast-desktop
	@install -D -m 755 $< $(DESTDIR)$(PREFIX)/bin/holdfast-desktop
	@cd examples/desktop/data && \
	  install -D -m 644 org.holdfast.Desktop.desktop $(DESTDIR)$(PREFIX)/share/applications/org.holdfast.Desktop.desktop && \
	  install -D -m 644 org.holdfast.Desktop.svg $(DESTDIR)$(PREFIX)/share/icons/hicolor/scalable/apps/org.holdfast.Desktop.svg && \
	  install -D -m 644 org.holdfast.Desktop.metainfo.xml $(DESTDIR)$(PREFIX)/share/metainfo/org.holdfast.Desktop.metainfo.xml

pictures: build/bin/holdfast-desktop | $(PYTHON)
	@mk/install-packages.sh $(APT_DESKTOP_TESTS)
	@$(PYTHON) Tests/desktop/pictures.py docs/pictures
