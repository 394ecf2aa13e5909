# The library for arm64 Linux, in Embedded Swift, and tests of it under an emulator on any machine.

.PHONY: arm64 test-arm64 test-arm64-full phones wheel-arm64

ARM64 := .build/arm64
ARM64_ROOT := .build/arm64-root
ARM64_TARGET := --target=aarch64-linux-gnu --sysroot=$(CURDIR)/$(ARM64_ROOT)
arm64: build/lib-arm64/libholdfast.so

# Debian's packages for that processor, unpacked: headers and libraries, and Python for the tests.
$(ARM64_ROOT): mk/sysroot.sh mk/arm64-packages.txt
	@mk/sysroot.sh arm64 $@ $$(cat mk/arm64-packages.txt)

# Written again only when it changes.
$(ARM64)/cc: mk/arm64.mk | $(ARM64_ROOT)
	@mkdir -p $(@D)
	@printf '#!/bin/sh\nexec %s %s -fuse-ld=lld -Wno-unused-command-line-argument "$$@"\n' '$(CLANG)' '$(ARM64_TARGET)' > $@.new
	@chmod +x $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# Embedded Swift has no standard library for Linux on arm64. That of the bare-metal target follows the same ABI; its
# objects are position-independent ELF files.
ARM64_HEADERS := --sysroot=$(CURDIR)/$(ARM64_ROOT) -isystem $(ARM64_ROOT)/usr/include/aarch64-linux-gnu \
  -isystem $(ARM64_ROOT)/usr/include
ARM64_HARDENED := -mbranch-protection=standard -mno-outline-atomics
cross = SWIFTC='$(SWIFT)c' SMALL='$(SMALL)' mk/cross.sh

$(ARM64)/swift: $(SOURCES) mk/cross.sh $(ARM64)/cc | .build/checked-lib
	@rm -rf $@
	@$(cross) swift $@ aarch64-none-none-elf - $(ARM64_HEADERS) -D__linux__=1 -D_GNU_SOURCE

$(ARM64)/c: $(wildcard Sources/COperations/*.c Sources/CPlatform/*.c Sources/CPlatform/*.h Sources/CPlatform/include/*.h) mk/cross.sh $(ARM64)/cc
	@rm -rf $@
	@$(cross) c $@ - $(ARM64)/cc $(ARM64_HARDENED)

# Embedded Swift on arm64 uses bits of the pointers to its blocks (Sources/CPlatform/memory.c).
ARM64_LINK := -Wl,--wrap=posix_memalign

# As `stripped` of mk/library.mk, with tools that know the processor.
define arm64_stripped
@mkdir -p $(dir $(@:build/%=build/debug/%))
@$(TOOLCHAIN)/bin/llvm-objcopy --only-keep-debug $@ $(@:build/%=build/debug/%).debug
@$(TOOLCHAIN)/bin/llvm-objcopy --strip-all --remove-section=.comment --add-gnu-debuglink=$(@:build/%=build/debug/%).debug $@
endef

build/lib-arm64/libholdfast.so: $(ARM64)/swift $(ARM64)/c .build/holdfast.map
	@mkdir -p $(@D)
	@$(ARM64)/cc -shared -o $@ $(ARM64)/swift/*.o $(ARM64)/c/*.o $(LINK) $(ARM64_LINK) $(RELR) $(LIBRARIES) -lm
	$(arm64_stripped)
	$(SONAME_LINK)

# ---- with SQLite, libsodium and jansson inside; the wheel ----

# Phones download it, so SQLite is optimised for size.
$(ARM64)/bundle/lib/libjansson.a: bindings/bundle/dependencies.sh $(ARM64)/cc .build/bundle/lib/libjansson.a
	@rm -rf $(ARM64)/bundle
	@CC=$(CURDIR)/$(ARM64)/cc AR=$(TOOLCHAIN)/bin/llvm-ar RANLIB=$(TOOLCHAIN)/bin/llvm-ranlib FLAGS='$(ARM64_HARDENED)' \
	  SQLITE_FLAGS=-Os SOURCES=$(CURDIR)/.build/bundle/sources bindings/bundle/dependencies.sh $(ARM64)/bundle aarch64-linux-gnu

build/lib-arm64-bundled/libholdfast.so: $(ARM64)/swift $(ARM64)/c $(ARM64)/bundle/lib/libjansson.a .build/holdfast.map bindings/bundle/bill.py
	@mkdir -p $(@D)
	@$(ARM64)/cc -shared -o $@ $(ARM64)/swift/*.o $(ARM64)/c/*.o $(LINK) $(ARM64_LINK) -Wl,--defsym=platform_bundled=1 \
	  $(ARM64)/bundle/lib/*.a -lm
	$(arm64_stripped)
	$(SONAME_LINK)
	@cp $(ARM64)/bundle/licenses/* $(@D)
	@python3 bindings/bundle/bill.py .build/bundle/sources $@ $(VERSION) $(SWIFT_VERSION) > $(@D)/holdfast.cdx.json

wheel-arm64: build/lib-arm64-bundled/libholdfast.so | $(PYTHON)
	@bindings/python/build.sh build/lib-arm64-bundled build/wheel-arm64

# ---- tests under the emulator ----

ARM64_BIN := build/arm64
ARM64_HOST := $(ARM64)/cc -std=gnu11 -O1 -g -Wall -Wextra -Werror -pthread -Iinclude -Ibuild/fuzz

build/lib-arm64/libholdfast_keys.so: $(KEYS_SOURCES) $(KEYS_HEADERS) $(wildcard Sources/HoldfastKeys/*.h) $(ARM64)/cc .build/holdfast_keys.map
	@mkdir -p $(@D)
	@$(ARM64)/cc -shared -fPIC -O2 $(filter-out -fcf-protection,$(C_FLAGS)) -o $@ $(KEYS_SOURCES) \
	  -Wl,--version-script=.build/holdfast_keys.map,-soname,libholdfast_keys.so.$(ABI) -ldl
	$(SONAME_LINK)

build/lib-arm64/libholdfast_http.so: $(HTTP_SOURCES) $(HTTP_HEADERS) $(wildcard Sources/HoldfastHTTP/*.h) build/lib-arm64/libholdfast.so \
    build/lib-arm64/libholdfast_keys.so .build/holdfast_http.map
	@$(ARM64)/cc -shared -fPIC -O2 $(filter-out -fcf-protection,$(HTTP_FLAGS)) -o $@ $(HTTP_SOURCES) \
	  -Wl,--version-script=.build/holdfast_http.map,-soname,libholdfast_http.so.$(ABI) -Lbuild/lib-arm64 -lholdfast -lholdfast_keys \
	  -lcurl $(call jansson,hfh_no_stdin)
	$(SONAME_LINK)

$(ARM64_BIN)/shell: $(C_SHELL) include/holdfast.h build/lib-arm64/libholdfast_http.so
	@mkdir -p $(@D)
	@$(ARM64_HOST) -ISources/HoldfastHTTP/include -o $@ $(filter %.c,$^) -Lbuild/lib-arm64 -lholdfast -lholdfast_http -lholdfast_keys -ljansson -lcurl

$(ARM64_BIN)/stress: Tests/sanitizers/stress.c Tests/fuzz/server.c Tests/fuzz/server.h build/lib-arm64/libholdfast.so
	@mkdir -p $(@D)
	@$(ARM64_HOST) -o $@ $(filter %.c,$^) -Lbuild/lib-arm64 -lholdfast -lsodium -ljansson

$(ARM64_BIN)/replay: Tests/fuzz/replay.c $(SCRIPTED) $(FUZZ_HEADERS) build/lib-arm64/libholdfast.so
	@mkdir -p $(@D)
	@$(ARM64_HOST) -o $@ $(filter %.c,$^) -Lbuild/lib-arm64 -lholdfast -lsodium -ljansson

$(ARM64_BIN)/%.so: Tests/phones/%.c $(ARM64)/cc
	@mkdir -p $(@D)
	@$(ARM64_HOST) -shared -fPIC -o $@ $<

# Python of that processor. It sees the tests' packages, of which two have code of their own for each processor.
ARM64_PYTHON := $(ARM64_ROOT)/usr/bin/python-emulated

$(ARM64_PYTHON): mk/arm64-python.sh mk/arm64.mk | $(PYTHON) $(ARM64_ROOT)
	@mk/arm64-python.sh $(ARM64_ROOT) $(CURDIR)/.venv mk/requirements/test.lock > $@.new
	@chmod +x $@.new
	@mv $@.new $@

# What the processor could change: every operation, its limits, salvage of damaged files, fork, threads, secrets in
# memory and in files. TESTS= names others.
ARM64_SUITES := boundary call memory queue queue_numbers recovery secrecy session_keys session_resume
ARM64_TESTS := $(ARM64_SUITES:%=Tests/abi/test_%.py)
# A renamed file stops every target: pytest-xdist says only "no tests ran".
$(foreach file,$(filter-out $(wildcard $(ARM64_TESTS)),$(ARM64_TESTS)),$(error mk/arm64.mk names $(file), which is not there))
ARM64_RUN = PATH=$(CURDIR)/$(ARM64):$$PATH HOLDFAST_SERVER_PYTHON=$(CURDIR)/$(PYTHON) \
  HOLDFAST_EMULATOR="qemu-aarch64 -L $(CURDIR)/$(ARM64_ROOT)" $(ARM64_PYTHON) -m pytest -q -n 2 -p no:cacheprovider

# The servers of the tests run natively. The last tests give a folder from one processor to the
# other, and compare simulated worlds on both.
test-arm64: build/lib-arm64/libholdfast.so build/lib/libholdfast.so $(ARM64_PYTHON)
	@$(AGAIN) phones
	@HOLDFAST_FLAVOUR=arm64 $(ARM64_RUN) $(or $(TESTS),$(ARM64_TESTS))
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) Tests/abi/test_processors.py
	@$(PYTEST) Tests/simulation/test_processors.py

# Every test of the C API, which takes hours, and a share of them on the library of the wheel.
test-arm64-full: wheel-arm64
	@$(PYTEST) Tests/packages/test_cross.py
	@$(AGAIN) test-arm64 TESTS=Tests/abi
	@HOLDFAST_FLAVOUR=arm64-bundled $(ARM64_RUN) Tests/abi/test_build_info.py Tests/abi/test_call.py Tests/abi/test_queue_numbers.py

# The hosts in C, under the conditions of Tests/phones/run.sh.
phones: $(addprefix $(ARM64_BIN)/,shell stress replay heap.so links.so) | $(PYTHON)
	@HOLDFAST_EMULATOR=$$(command -v qemu-aarch64) QEMU_LD_PREFIX=$(CURDIR)/$(ARM64_ROOT) Tests/phones/run.sh $(or $(ROUNDS),12)
