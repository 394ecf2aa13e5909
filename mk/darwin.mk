# The core compiled for Apple's systems on any machine: Mach-O objects, which nothing here links or runs.

.PHONY: darwin test-darwin

DARWIN := .build/darwin

darwin: $(DARWIN)/ios $(DARWIN)/macos

# Apple's C headers, which the package ziglang carries; those of the three libraries are every system's.
$(DARWIN)/include: mk/darwin-headers.txt .build/bundle/lib/libjansson.a | $(PYTHON)
	@rm -rf $(DARWIN)/wheel $@
	@mkdir -p $(DARWIN)/wheel
	@$(PYTHON) -m pip download -q --disable-pip-version-check --require-hashes --no-deps --only-binary=:all: \
	  --platform manylinux_2_12_x86_64 -d $(DARWIN)/wheel -r $<
	@cd $(DARWIN)/wheel && $(CURDIR)/$(PYTHON) -c 'import sys, zipfile; archive = zipfile.ZipFile(sys.argv[1]); \
	  archive.extractall(members=[name for name in archive.namelist() if "/any-darwin-any/" in name])' *.whl
	@mv $(DARWIN)/wheel/ziglang/lib/libc/include/any-darwin-any $@
	@cp -r .build/bundle/include/. $@/
	@rm -r $(DARWIN)/wheel

# Apple's headers expect some of clang's own before them.
DARWIN_HEADERS = -nostdlibinc -isystem $(shell $(CLANG) -print-resource-dir)/include -isystem $(CURDIR)/$(DARWIN)/include

# $(call apple,TARGET-OF-SWIFT,TARGET-OF-C): the objects of the Swift modules and of the C files, in $@.
define apple
@rm -rf $@
@$(cross) swift $@/swift $(1) - $(DARWIN_HEADERS)
@$(cross) c $@/c - "$(CLANG) --target=$(2)" $(DARWIN_HEADERS)
endef

$(DARWIN)/ios: $(SOURCES) mk/cross.sh $(DARWIN)/include | .build/checked-lib
	$(call apple,arm64-apple-ios18.0,arm64-apple-ios18.0)

# For macOS the toolchain on Linux has the standard library of bare Mach-O, without a system.
$(DARWIN)/macos: $(SOURCES) mk/cross.sh $(DARWIN)/include | .build/checked-lib
	$(call apple,arm64-apple-none-macho,arm64-apple-macos14.0)

# A part of `make test`: each module and each C file is an object of Mach-O for arm64.
test-darwin:
	@$(AGAIN) -j2 darwin
	@for system in ios macos; do mk/mach-o.sh $(DARWIN)/$$system || exit 1; done
