# The library for musl (Alpine), with SQLite, libsodium and jansson inside; for the processor of this machine.

.PHONY: musl test-musl

MUSL := .build/musl
MUSL_TARGET := $(shell uname -m)-linux-musl
MUSL_HEADERS := -nostdlibinc -isystem $(CURDIR)/$(MUSL)/bundle/include -isystem /usr/include/$(MUSL_TARGET)

musl: build/lib-musl/libholdfast.so

$(MUSL)/bundle/lib/libjansson.a: bindings/bundle/dependencies.sh .build/bundle/lib/libjansson.a
	@command -v musl-gcc > /dev/null || { echo "musl-gcc is missing: install musl-tools" >&2; exit 1; }
	@rm -rf $(MUSL)/bundle
	@CC=musl-gcc SOURCES=$(CURDIR)/.build/bundle/sources bindings/bundle/dependencies.sh $(MUSL)/bundle $(MUSL_TARGET)

$(MUSL)/swift: $(SOURCES) mk/cross.sh $(MUSL)/bundle/lib/libjansson.a | .build/checked-lib
	@rm -rf $@
	@$(cross) swift $@ $(shell uname -m)-unknown-linux-gnu - $(MUSL_HEADERS) -D_GNU_SOURCE \
	  2> >(grep -v 'libc not found for' >&2)

$(MUSL)/c: $(wildcard Sources/COperations/*.c Sources/CPlatform/*.c Sources/CPlatform/*.h Sources/CPlatform/include/*.h) mk/cross.sh $(MUSL)/bundle/lib/libjansson.a
	@rm -rf $@
	@$(cross) c $@ - "$(CLANG) --target=$(MUSL_TARGET)" $(MUSL_HEADERS)

build/lib-musl/libholdfast.so: $(MUSL)/swift $(MUSL)/c .build/holdfast.map
	@mkdir -p $(@D)
	@musl-gcc -shared -o $@ $(MUSL)/swift/*.o $(MUSL)/c/*.o $(MUSL)/bundle/lib/*.a -lm $(LINK) -fuse-ld=lld \
	  -Wl,--defsym=platform_bundled=1
	$(call stripped,$@)
	$(SONAME_LINK)

# ---- the hosts in C: the scripts, the threads and the tour, which runs against the local backend ----

MUSL_BIN := build/musl
MUSL_HOST := musl-gcc -std=gnu11 -O1 -g -Wall -Wextra -Werror -pthread -Iinclude -Ibuild/fuzz -I$(MUSL)/bundle/include \
  -I$(MUSL)/curl/include -ISources/HoldfastKeys/include -ISources/HoldfastHTTP/include -Wl,-rpath,'$$ORIGIN/../lib-musl'
MUSL_ARCHIVES := $(addprefix $(MUSL)/bundle/lib/,libsodium.a libjansson.a)

# Debian has libcurl for glibc alone.
$(MUSL)/curl/lib/libcurl.a: mk/musl-curl.sh | .build/checked-wheel
	@mk/musl-curl.sh $(MUSL)/curl $(MUSL_TARGET)

build/lib-musl/libholdfast_keys.so: $(KEYS_SOURCES) $(KEYS_HEADERS) $(wildcard Sources/HoldfastKeys/*.h) .build/holdfast_keys.map
	@mkdir -p $(@D)
	@$(MUSL_HOST) -shared -fPIC -o $@ $(KEYS_SOURCES) -Wl,--version-script=.build/holdfast_keys.map \
	  -Wl,-soname,libholdfast_keys.so.$(ABI)
	$(SONAME_LINK)

build/lib-musl/libholdfast_http.so: $(HTTP_SOURCES) $(HTTP_HEADERS) $(wildcard Sources/HoldfastHTTP/*.h) \
    build/lib-musl/libholdfast.so build/lib-musl/libholdfast_keys.so $(MUSL)/curl/lib/libcurl.a .build/holdfast_http.map
	@$(MUSL_HOST) -shared -fPIC -fvisibility=hidden -o $@ $(HTTP_SOURCES) -Wl,--version-script=.build/holdfast_http.map \
	  -Wl,-soname,libholdfast_http.so.$(ABI) -Lbuild/lib-musl -lholdfast -lholdfast_keys $(MUSL)/curl/lib/libcurl.a $(MUSL)/bundle/lib/libjansson.a
	$(SONAME_LINK)

$(MUSL_BIN)/shell: $(C_SHELL) include/holdfast.h build/lib-musl/libholdfast_http.so
	@mkdir -p $(@D)
	@$(MUSL_HOST) -o $@ $(filter %.c,$^) -Lbuild/lib-musl -lholdfast -lholdfast_http -lholdfast_keys $(MUSL_ARCHIVES) $(MUSL)/curl/lib/libcurl.a

$(MUSL_BIN)/stress: Tests/sanitizers/stress.c Tests/fuzz/server.c Tests/fuzz/server.h build/lib-musl/libholdfast.so
	@mkdir -p $(@D)
	@$(MUSL_HOST) -o $@ $(filter %.c,$^) -Lbuild/lib-musl -lholdfast $(MUSL_ARCHIVES)

$(MUSL_BIN)/replay: Tests/fuzz/replay.c $(SCRIPTED) $(FUZZ_HEADERS) build/lib-musl/libholdfast.so
	@mkdir -p $(@D)
	@$(MUSL_HOST) -o $@ $(filter %.c,$^) -Lbuild/lib-musl -lholdfast $(MUSL_ARCHIVES)

test-musl: $(addprefix $(MUSL_BIN)/,replay stress shell) | $(PYTHON)
	@$(MUSL_BIN)/replay Tests/fuzz/seeds/* Tests/fuzz/regressions/*
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; $(MUSL_BIN)/stress "$$folder" $(or $(ROUNDS),12)
	@examples/c/demo.sh $(CURDIR)/$(MUSL_BIN)/shell
