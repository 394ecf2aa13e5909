# The library for arm64 Linux, in Embedded Swift, and tests of it under an emulator on any machine.

.PHONY: arm64 setup-arm64 test-arm64

ARM64 := .build/arm64
ARM64_ROOT := .build/arm64-root
ARM64_TARGET := --target=aarch64-linux-gnu --sysroot=$(CURDIR)/$(ARM64_ROOT)
# What Package.swift builds the library from, each after the modules that it uses (Tests/packages holds it to that).
ARM64_MODULES := Base Vault Store Policy Supabase Engine Holdfast
C_MODULES := Sources/CSQLite Sources/CSodium Sources/CJansson include

arm64: build/lib-arm64/libholdfast.so

setup-arm64: setup
	@mk/install-packages.sh qemu-user

# Debian's packages for that processor, unpacked: headers and libraries, and Python for the tests.
$(ARM64_ROOT): mk/sysroot.sh
	@mk/sysroot.sh arm64 $@ libc6-dev libgcc-12-dev libsqlite3-dev libsodium-dev libjansson-dev python3.11 libpq5

$(ARM64)/cc: mk/arm64.mk | $(ARM64_ROOT)
	@mkdir -p $(@D)
	@printf '#!/bin/sh\nexec %s %s -fuse-ld=lld -Wno-unused-command-line-argument "$$@"\n' '$(CLANG)' '$(ARM64_TARGET)' > $@
	@chmod +x $@

# SwiftPM cannot build this: Embedded Swift has no standard library for Linux on arm64. That of the bare-metal target
# follows the same ABI; its objects are position-independent ELF files.
$(ARM64)/objects: $(SOURCES) mk/arm64.mk $(ARM64)/cc | .build/checked-lib
	@rm -rf $@; mkdir -p $@ $(ARM64)/modules
	@printf 'module CPlatform {\n  header "%s/Sources/CPlatform/include/platform.h"\n  export *\n}\n' '$(CURDIR)' \
	  > $(ARM64)/modules/CPlatform.modulemap
	@for module in $(ARM64_MODULES); do \
	  $(SWIFT)c -target aarch64-none-none-elf -swift-version 6 -wmo -parse-as-library $(SMALL) \
	    -enable-experimental-feature Embedded -enable-upcoming-feature ExistentialAny \
	    -enable-upcoming-feature InternalImportsByDefault \
	    $(addprefix -Xcc ,-fPIC --sysroot=$(CURDIR)/$(ARM64_ROOT) -isystem $(ARM64_ROOT)/usr/include/aarch64-linux-gnu \
	      -isystem $(ARM64_ROOT)/usr/include -D__linux__=1 -D_GNU_SOURCE -DHOLDFAST_EMBEDDED \
	      $(C_MODULES:%=-fmodule-map-file=%/module.modulemap) -fmodule-map-file=$(ARM64)/modules/CPlatform.modulemap) \
	    -I $(ARM64)/modules -module-name $$module -emit-module-path $(ARM64)/modules/$$module.swiftmodule \
	    -c -o $@/$$module.o $$(find Sources/$$module -name '*.swift' | LC_ALL=C sort) || exit 1; \
	done
	@for file in Sources/CPlatform/*.c; do \
	  $(ARM64)/cc -c -fPIC -O2 -g -ffunction-sections -fstack-protector-strong -mbranch-protection=standard \
	    -mno-outline-atomics -D_FORTIFY_SOURCE=3 -DHOLDFAST_EMBEDDED -ISources/CPlatform/include \
	    -o $@/$$(basename $$file .c).o $$file || exit 1; \
	done

build/lib-arm64/libholdfast.so: $(ARM64)/objects .build/holdfast.map
	@mkdir -p $(@D)
	@$(ARM64)/cc -shared -o $@ $</*.o $(LINK) $(RELR) $(LIBRARIES) -lm
	@mkdir -p build/debug/lib-arm64
	@$(TOOLCHAIN)/bin/llvm-objcopy --only-keep-debug $@ build/debug/lib-arm64/libholdfast.so.debug
	@$(TOOLCHAIN)/bin/llvm-objcopy --strip-all --add-gnu-debuglink=build/debug/lib-arm64/libholdfast.so.debug $@
	$(SONAME_LINK)

# ---- tests under the emulator ----

# Python of that processor. It sees the tests' packages, of which two have code of their own for each processor.
ARM64_PYTHON := $(ARM64_ROOT)/usr/bin/python-emulated

$(ARM64_PYTHON): mk/arm64-python.sh mk/arm64.mk | $(PYTHON) $(ARM64_ROOT)
	@mk/arm64-python.sh $(ARM64_ROOT) $(CURDIR)/.venv $(LOCK) > $@.new
	@chmod +x $@.new
	@mv $@.new $@

# What the processor could change: every operation, its limits, salvage of damaged files, fork, threads, secrets in
# memory and in files. TESTS= names others; every test of the C API takes hours.
ARM64_SUITES := boundary call memory queue queue_numbers recovery salvage secrecy session_keys session_storage

# The servers of the tests run natively. The last tests give a folder from one processor to the other.
test-arm64: setup-arm64 build/lib-arm64/libholdfast.so build/lib/libholdfast.so $(ARM64_PYTHON)
	@PATH=$(CURDIR)/$(ARM64):$$PATH HOLDFAST_FLAVOUR=arm64 HOLDFAST_SERVER_PYTHON=$(CURDIR)/$(PYTHON) \
	  HOLDFAST_EMULATOR="qemu-aarch64 -L $(CURDIR)/$(ARM64_ROOT)" \
	  $(ARM64_PYTHON) -m pytest -q -n 2 -p no:cacheprovider $(or $(TESTS),$(ARM64_SUITES:%=Tests/abi/test_%.py))
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) Tests/abi/test_processors.py
