# The desktop app: examples/desktop.
#
#   desktop           starts it on the local backend with its demo people, and a panel beside it
#   test-desktop      its tests, under Xvfb and over the accessibility tree
#   sanitize-desktop  the same with AddressSanitizer: no memory error, no leak but those of Tests/desktop/leaks.supp
#   pictures          draws docs/pictures under Xvfb

.PHONY: desktop test-desktop sanitize-desktop install-desktop pictures

DESKTOP_SOURCES := $(wildcard examples/desktop/src/*)
DESKTOP_SCREENS := $(wildcard examples/desktop/ui/*) examples/desktop/data/org.holdfast.Desktop.svg
DESKTOP_FLAGS := -std=gnu11 -DG_LOG_DOMAIN='"holdfast-desktop"' -g -Wall -Wextra -Werror -Iinclude -ISources/HoldfastKeys/include \
  -ISources/HoldfastHTTP/include

.build/desktop/resources.c: $(DESKTOP_SCREENS)
	@mkdir -p $(@D)
	@glib-compile-resources --generate-source --target=$@ --sourcedir=examples/desktop/ui examples/desktop/ui/desktop.gresource.xml

build/bin/holdfast-desktop-checked: SANITIZE := -fsanitize=address -fuse-ld=lld
build/bin/holdfast-desktop build/bin/holdfast-desktop-checked: $(DESKTOP_SOURCES) .build/desktop/resources.c include/holdfast.h \
    $(HTTP_HEADERS) $(KEYS_HEADERS) build/lib/libholdfast.so build/lib/libholdfast_keys.so build/lib/libholdfast_http.so
	@mkdir -p $(@D)
	@$(CLANG) $(DESKTOP_FLAGS) -O1 $(SANITIZE) -o $@ $(wildcard examples/desktop/src/*.c) .build/desktop/resources.c \
	  $$(pkg-config --cflags --libs libadwaita-1 libsecret-1 jansson) -Lbuild/lib -lholdfast -lholdfast_keys -lholdfast_http \
	  -Wl,-rpath,'$$ORIGIN/../lib'

# What users run installs GTK. In other makes, which see what was installed: the driver is known only where libcurl's
# headers are.
desktop:
	@$(AGAIN) setup-tools PARTS=desktop
	@$(AGAIN) build/bin/holdfast-desktop
	@/usr/bin/python3 examples/desktop/panel/panel.py build/bin/holdfast-desktop

test-desktop: | .build/checked-desktop
	@$(AGAIN) build/bin/holdfast-desktop
	@$(PYTEST) -n 2 Tests/desktop

# Neither reports what was suppressed, nor doubts a format of glibc's.
sanitize-desktop: | .build/checked-desktop
	@$(AGAIN) build/bin/holdfast-desktop-checked
	@HOLDFAST_DESKTOP=$(CURDIR)/build/bin/holdfast-desktop-checked ASAN_OPTIONS=check_printf=0 \
	  LSAN_OPTIONS=print_suppressions=0:suppressions=$(CURDIR)/Tests/desktop/leaks.supp $(PYTEST) Tests/desktop

install-desktop: build/bin/holdfast-desktop
	@install -D -m 755 $< $(DESTDIR)$(PREFIX)/bin/holdfast-desktop
	@cd examples/desktop/data && \
	  install -D -m 644 org.holdfast.Desktop.desktop $(DESTDIR)$(PREFIX)/share/applications/org.holdfast.Desktop.desktop && \
	  install -D -m 644 org.holdfast.Desktop.svg $(DESTDIR)$(PREFIX)/share/icons/hicolor/scalable/apps/org.holdfast.Desktop.svg && \
	  install -D -m 644 org.holdfast.Desktop.metainfo.xml $(DESTDIR)$(PREFIX)/share/metainfo/org.holdfast.Desktop.metainfo.xml

pictures:
	@$(AGAIN) setup-tools PARTS=desktop
	@$(AGAIN) build/bin/holdfast-desktop
	@$(PYTHON) Tests/desktop/pictures.py docs/pictures
