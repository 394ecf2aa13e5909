# The library in Embedded Swift, beside the system's libraries and with them inside.

# Optimised for size: the database and the disk take the time, not our instructions. One section per
# function lets the linker drop the unused copies of generic code. closure-specialize would copy a function
# that takes a closure for each of its callers.
SMALL := -Osize -enforce-exclusivity=unchecked -Xfrontend -function-sections -Xllvm -enable-machine-outliner=always \
  -Xllvm -enable-linkonceodr-outlining -Xllvm -sil-disable-pass=closure-specialize
# For scripts that compile for other systems.
.PHONY: print-SMALL
print-SMALL:
	@echo '$(SMALL)'

# Relative relocations take about a bit each instead of 24 bytes, but glibc reads them only since 2.36. The
# bundled library is for other machines too and does without.
RELR := $(shell getconf GNU_LIBC_VERSION 2> /dev/null | awk '$$2 >= 2.36 {print "-Wl,-z,pack-relative-relocs"}')

.build-embedded/release/libHoldfastStatic.a: $(SOURCES) | .build/checked-lib
	$(call archive,--traits Embedded --scratch-path .build-embedded $(foreach flag,$(SMALL),-Xswiftc $(flag)))

build/lib/libholdfast.so: .build-embedded/release/libHoldfastStatic.a .build/holdfast.map
	@mkdir -p $(@D)
	@$(CLANG) -shared -fuse-ld=lld -o $@ -Wl,--whole-archive $< -Wl,--no-whole-archive $(LINK) $(RELR) $(LIBRARIES) -lm
	$(call stripped,$@)
	$(SONAME_LINK)

# ---- its C with either kind of `char`, for Tests/packages/test_surroundings.py ----

build/lib-%-char/libholdfast.so: .build-embedded/release/libHoldfastStatic.a .build/holdfast.map mk/cross.sh
	@rm -rf .build/$*-char
	@mk/cross.sh c .build/$*-char - $(CLANG) -f$*-char $(HARDENED)
	@cp $< .build/$*-char/swift.a
	@ar d .build/$*-char/swift.a $(notdir $(patsubst %.c,%.c.o,$(wildcard Sources/COperations/*.c Sources/CPlatform/*.c)))
	@mkdir -p $(@D)
	@$(CLANG) -shared -fuse-ld=lld -o $@ .build/$*-char/*.o -Wl,--whole-archive .build/$*-char/swift.a -Wl,--no-whole-archive \
	  $(LINK) $(RELR) $(LIBRARIES) -lm
	$(SONAME_LINK)

# ---- bundled, for Python's wheel and app bundles: needs only the C library ----

.build/bundle/lib/libjansson.a: bindings/bundle/dependencies.sh bindings/bundle/sources.sh | .build/checked-wheel
	@CC=cc bindings/bundle/dependencies.sh .build/bundle

# For the bill of materials.
SWIFT_VERSION = $(shell $(SWIFT) --version 2> /dev/null | sed -n 's/.*Swift version \([0-9.]*\).*/\1/p')

build/lib-bundled/libholdfast.so: .build-embedded/release/libHoldfastStatic.a .build/holdfast.map .build/bundle/lib/libjansson.a bindings/bundle/bill.py
	@mkdir -p $(@D)
	@$(CLANG) -shared -fuse-ld=lld -o $@ -Wl,--whole-archive $< -Wl,--no-whole-archive $(LINK) -Wl,--defsym=platform_bundled=1 \
	  .build/bundle/lib/*.a -lm
	$(call stripped,$@)
	$(SONAME_LINK)
	@cp .build/bundle/licenses/* $(@D)
	@python3 bindings/bundle/bill.py .build/bundle/sources $@ $(VERSION) $(SWIFT_VERSION) > $(@D)/holdfast.cdx.json
