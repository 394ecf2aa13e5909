# The library in ordinary Swift, the key stores, the HTTP driver, the headers, and what both flavours of the library share.

SOURCES := Package.swift $(shell find Sources -name '*.swift' -o -name '*.c' -o -name '*.h' -o -name '*.modulemap') \
  include/holdfast.h include/module.modulemap
# jansson inside and hidden: that of the host stays as it is. Debian's archive is position-independent but for
# json_loadf(), which nothing calls and which reads stdin; $(call jansson,POINTER) gives it another pointer.
jansson = -l:libjansson.a -Wl,--defsym=stdin=$(1)
LIBRARIES := -lsqlite3 -lsodium $(call jansson,platform_no_stdin)
SWIFT_STATIC := $(TOOLCHAIN)/lib/swift_static/linux
SWIFT_RUNTIME := $(SWIFT_STATIC)/$(shell uname -m)/swiftrt.o -L$(SWIFT_STATIC) -lswiftCore \
  -lstdc++ -lm -ldl -pthread

# For the C code: checks of the stack and of known buffer sizes (Package.swift sets _FORTIFY_SOURCE), and
# landing pads for indirect jumps. Swift checks its own bounds.
HARDENED := -fstack-protector-strong $(if $(filter x86_64,$(shell uname -m)),-fcf-protection,-mbranch-protection=standard)

# Exports only the functions of the header. The library is never unloaded (handles and allocator hooks
# outlive it), and every free() zeroes the memory first.
LINK := -Wl,--version-script=.build/holdfast.map,--gc-sections,-z,nodelete,-z,defs,-z,relro,-z,now,--icf=all,--build-id \
  -Wl,--wrap=free -Wl,-soname,libholdfast.so.$(ABI)
# A program that is linked against the build tree looks for the name with the ABI's number.
SONAME_LINK = @ln -sf $(@F) $@.$(ABI)

# $(call stripped,build/FOLDER/FILE): moves the debug information to build/debug/FOLDER/FILE.debug. Not beside
# the library, where valgrind finds it and cannot read it.
define stripped
@mkdir -p $(dir $(1:build/%=build/debug/%))
@objcopy --only-keep-debug $(1) $(1:build/%=build/debug/%).debug
@objcopy --strip-all --remove-section=.comment --add-gnu-debuglink=$(1:build/%=build/debug/%).debug $(1)
endef

# $(call release,PRODUCT,OPTIONS): every product of a scratch folder is built with the same flags, because SwiftPM compiles
# all modules again where they differ.
release = $(SWIFT) build -q -c release --product $(1) $(HARDENED:%=-Xcc %) $(2)

# $(call archive,OPTIONS): builds the static library. SwiftPM keeps the objects of deleted files in an old
# archive, so the archive is removed first.
archive = @rm -f $@; $(call release,HoldfastStatic,$(1))

.build/holdfast.map: Makefile
	@mkdir -p .build
	@echo 'HOLDFAST_1 { global: holdfast_*; local: *; };' > $@

.build/holdfast_keys.map: Makefile
	@mkdir -p .build
	@echo 'HOLDFAST_KEYS_1 { global: holdfast_keyring_*; holdfast_mailbox_*; local: *; };' > $@

.build/holdfast_http.map: Makefile
	@mkdir -p .build
	@echo 'HOLDFAST_HTTP_1 { global: holdfast_http_*; local: *; };' > $@

# ---- ordinary Swift ----

.build-runtime/release/libHoldfastStatic.a: $(SOURCES) | .build/checked-lib
	$(call archive,--scratch-path .build-runtime)

build/lib-runtime/libholdfast.so: .build-runtime/release/libHoldfastStatic.a .build/holdfast.map
	@mkdir -p $(@D)
	@$(CLANG) -shared -fuse-ld=lld -o $@ -Wl,--whole-archive $< -Wl,--no-whole-archive $(SWIFT_RUNTIME) $(LINK) $(LIBRARIES)
	$(call stripped,$@)
	$(SONAME_LINK)

# ---- unoptimised, from the objects of the unit tests ----

# For work on the sources: after a change it is there in seconds.
#   make lib-debug && HOLDFAST_FLAVOUR=debug .venv/bin/python -m pytest Tests/abi/test_sign_in.py
.PHONY: lib-debug
lib-debug: .build/holdfast.map | .build/checked-lib
	@rm -f .build-test/debug/libHoldfastStatic.a # It would keep the objects of sources that are gone.
	@$(SWIFT) build -q --product HoldfastStatic $(SWIFT_TESTS)
	@mkdir -p build/lib-debug
	@$(CLANG) -shared -fuse-ld=lld -o build/lib-debug/libholdfast.so -Wl,--whole-archive .build-test/debug/libHoldfastStatic.a \
	  -Wl,--no-whole-archive $(SWIFT_RUNTIME) -lswiftSwiftOnoneSupport $(LINK) $(LIBRARIES)
	@ln -sf libholdfast.so build/lib-debug/libholdfast.so.$(ABI)

# ---- the key stores for hosts that have none, and the driver on libcurl, which opens them by name ----

KEYS_SOURCES := $(wildcard Sources/HoldfastKeys/*.c)
KEYS_HEADERS := Sources/HoldfastKeys/include/holdfast_keys.h
C_FLAGS := $(HARDENED) -D_FORTIFY_SOURCE=3 -Wall -Wextra -Werror -pthread -Iinclude -ISources/HoldfastKeys/include
# What libraries of C have in common, for $(CLANG) -shared.
C_LINK := -Wl,-z,nodelete,-z,relro,-z,now,--build-id -Wl,-rpath,'$$ORIGIN'

build/lib/libholdfast_keys.so: $(KEYS_SOURCES) $(KEYS_HEADERS) $(wildcard Sources/HoldfastKeys/*.h) include/holdfast.h \
    .build/holdfast_keys.map | .build/checked-lib
	@mkdir -p $(@D)
	@$(CLANG) -shared -fPIC -O2 -g $(C_FLAGS) -o $@ $(KEYS_SOURCES) $(C_LINK) -Wl,--version-script=.build/holdfast_keys.map \
	  -Wl,-soname,libholdfast_keys.so.$(ABI) -ldl
	$(call stripped,$@)
	$(SONAME_LINK)

HTTP_SOURCES := $(wildcard Sources/HoldfastHTTP/*.c)
HTTP_HEADERS := $(wildcard Sources/HoldfastHTTP/include/*.h)
# Empty where libcurl's headers are missing: `lib` then leaves the driver out.
HTTP_LIBRARY := $(shell echo '\#include <curl/curl.h>' | $(CLANG) -E -x c - > /dev/null 2>&1 && echo build/lib/libholdfast_http.so)

HTTP_FLAGS := -fvisibility=hidden $(C_FLAGS) -ISources/HoldfastHTTP/include

build/lib/libholdfast_http.so: $(HTTP_SOURCES) $(HTTP_HEADERS) $(wildcard Sources/HoldfastHTTP/*.h) \
    build/lib/libholdfast.so build/lib/libholdfast_keys.so .build/holdfast_http.map | .build/checked-http
	@$(CLANG) -shared -fPIC -O2 -g $(HTTP_FLAGS) -o $@ $(HTTP_SOURCES) $(C_LINK) -Wl,--version-script=.build/holdfast_http.map \
	  -Wl,-soname,libholdfast_http.so.$(ABI) -Lbuild/lib -lholdfast -lholdfast_keys -lcurl $(call jansson,hfh_no_stdin)
	$(call stripped,$@)
	$(SONAME_LINK)

# ---- static archives, for `make install` ----

# $(call merged,OBJECTS,OPTIONS): an archive of one object with what it needs of jansson inside, in which only holdfast_* is visible, so
# that nothing of it can clash with the host's functions.
define merged
@ld -r --force-group-allocation $(2) -o $@.o $(1) $$($(CLANG) -print-file-name=libjansson.a)
@objcopy --strip-debug --wildcard --keep-global-symbol='holdfast_*' $@.o
@rm -f $@
@ar rcD $@ $@.o
@rm $@.o
endef

# The linker keeps what the functions of the header use.
build/lib/libholdfast.a: .build-embedded/release/libHoldfastStatic.a
	@mkdir -p $(@D)
	$(call merged,--whole-archive $< --no-whole-archive,--wrap=free --gc-sections --defsym=stdin=platform_no_stdin \
	  $$(nm -g --defined-only $< 2> /dev/null | awk '$$3 ~ /^holdfast_/ {print "-u", $$3}'))

.build/keys/%.o: Sources/HoldfastKeys/%.c $(KEYS_HEADERS) $(wildcard Sources/HoldfastKeys/*.h) include/holdfast.h | .build/checked-lib
	@mkdir -p $(@D)
	@$(CLANG) -c -fPIC -O2 -g -ffunction-sections $(C_FLAGS) -o $@ $<

build/lib/libholdfast_keys.a: $(KEYS_SOURCES:Sources/HoldfastKeys/%.c=.build/keys/%.o)
	@mkdir -p $(@D)
	$(call merged,$^)

.build/http/%.o: Sources/HoldfastHTTP/%.c $(HTTP_HEADERS) $(KEYS_HEADERS) $(wildcard Sources/HoldfastHTTP/*.h) include/holdfast.h | .build/checked-http
	@mkdir -p $(@D)
	@$(CLANG) -c -fPIC -O2 -g -ffunction-sections $(HTTP_FLAGS) -o $@ $<

build/lib/libholdfast_http.a: $(HTTP_SOURCES:Sources/HoldfastHTTP/%.c=.build/http/%.o)
	@mkdir -p $(@D)
	$(call merged,$^,--defsym=stdin=hfh_no_stdin)

ARCHIVES := build/lib/libholdfast.a build/lib/libholdfast_keys.a $(HTTP_LIBRARY:.so=.a)

# ---- headers ----

PUBLIC_HEADERS := include/holdfast.h include/holdfast.schema.json include/holdfast.openrpc.json include/module.modulemap $(KEYS_HEADERS) $(HTTP_HEADERS)

build/include/holdfast.h: $(PUBLIC_HEADERS)
	@mkdir -p $(@D)
	@cp $(PUBLIC_HEADERS) $(@D)
