# Instrumented builds and the tests that run on them. See Tests/sanitizers/README.md.
#
#   fuzz            libFuzzer for MINUTES (10), over the scripts in Tests/fuzz; from a random SEED, which it prints
#   test-asan       the whole of Tests/abi, the seeds and the threads' stress under AddressSanitizer and UBSan
#   test-tsan       the whole of Tests/abi and the threads' stress under ThreadSanitizer
#   test-valgrind   the seeds and the unit tests under valgrind, leaks and all
#   sanitize        all of these; a part of `make nightly`
#   sanitize-replay the part in `make test-all`, without a search: the scripts, the stress and the thread tests

SANITIZERS := Tests/sanitizers
RUNTIMES = $(dir $(shell $(CLANG) -print-file-name=libclang_rt.asan-x86_64.so))
MINUTES ?= 10
STRESS_ROUNDS ?= 60

# build/asan and build/tsan hold what build/ holds: lib/ (Embedded) and lib-runtime/ (ordinary Swift).
LINES := -Xswiftc -gline-tables-only -Xcc -gline-tables-only -Xcc -fno-omit-frame-pointer
ASAN := -Xswiftc -sanitize=address -Xcc -fsanitize=address,undefined -Xcc -fno-sanitize-recover=undefined
TSAN := -Xswiftc -sanitize=thread -Xcc -fsanitize=thread
COVERAGE := -Xswiftc -sanitize-coverage=edge,indirect-calls,trace-cmp,inline-8bit-counters,pc-table \
  -Xcc -fsanitize=fuzzer-no-link
# Addresses of the sanitizer's own functions come from its runtime when the host starts: no -z defs.
SANITIZED_LINK := -shared -fuse-ld=lld -shared-libsan -Wl,-z,nodelete,-z,now,--wrap=free \
  -Wl,--version-script=.build/holdfast.map -Wl,-soname,libholdfast.so

.build-asan/release/libHoldfastStatic.a: $(SOURCES) | .build/checked-lib
	$(call archive,--traits Embedded --scratch-path .build-asan $(LINES) $(ASAN) $(COVERAGE))

.build-asan-runtime/release/libHoldfastStatic.a: $(SOURCES) | .build/checked-lib
	$(call archive,--scratch-path .build-asan-runtime $(LINES) $(ASAN))

.build-tsan/release/libHoldfastStatic.a: $(SOURCES) | .build/checked-lib
	$(call archive,--traits Embedded --scratch-path .build-tsan $(LINES) $(TSAN))

.build-tsan-runtime/release/libHoldfastStatic.a: $(SOURCES) | .build/checked-lib
	$(call archive,--scratch-path .build-tsan-runtime $(LINES) $(TSAN))

sanitizer = $(if $(findstring asan,$@),address$(comma)undefined,thread)
comma := ,

build/%san/lib/libholdfast.so: .build-%san/release/libHoldfastStatic.a .build/holdfast.map
	@mkdir -p $(@D)
	@$(CLANG) $(SANITIZED_LINK) -fsanitize=$(sanitizer) -o $@ -Wl,--whole-archive $< -Wl,--no-whole-archive $(LIBRARIES) -lm

build/%san/lib-runtime/libholdfast.so: .build-%san-runtime/release/libHoldfastStatic.a .build/holdfast.map
	@mkdir -p $(@D)
	@$(CLANG) $(SANITIZED_LINK) -fsanitize=$(sanitizer) -o $@ -Wl,--whole-archive $< -Wl,--no-whole-archive $(SWIFT_RUNTIME) $(LIBRARIES)

# ---- programs ----

# The older DWARF: Debian 12's valgrind reads no other of clang's.
HOST_FLAGS := -std=gnu11 -O1 -gdwarf-4 -Wall -Wextra -Werror -Iinclude -Ibuild/fuzz
SCRIPTED := $(addprefix Tests/fuzz/,judge.c scene.c script.c server.c text.c)
FUZZ_HEADERS := $(wildcard Tests/fuzz/*.h) build/fuzz/tables.h

build/fuzz/tables.h: Tests/fuzz/tables.py include/holdfast.schema.json
	@mkdir -p $(@D)
	@python3 $< tables $@

build/fuzz/holdfast.dict: Tests/fuzz/tables.py Tests/fuzz/server.words Tests/fuzz/script.c Tests/fuzz/text.c include/holdfast.schema.json
	@mkdir -p $(@D)
	@python3 $< dictionary $@

build/fuzz/fuzz: Tests/fuzz/fuzz.c $(SCRIPTED) $(FUZZ_HEADERS) .build-asan/release/libHoldfastStatic.a
	@$(CLANG) $(HOST_FLAGS) -fuse-ld=lld -fsanitize=address,undefined,fuzzer -o $@ $(filter %.c,$^) \
	  -Wl,--whole-archive $(filter %.a,$^) -Wl,--no-whole-archive -Wl,--wrap=free,--wrap=getrandom -lsqlite3 -lsodium -ljansson -lm

build/fuzz/replay: Tests/fuzz/replay.c $(SCRIPTED) $(FUZZ_HEADERS) build/lib/libholdfast.so
	@$(CLANG) $(HOST_FLAGS) -o $@ $(filter %.c,$^) -Lbuild/lib -lholdfast -lsodium -ljansson

# Swift's ThreadSanitizer runtime asks for libdispatch.
DISPATCH = -L$(TOOLCHAIN)/lib/swift/linux -Wl,-rpath,$(TOOLCHAIN)/lib/swift/linux -Wl,--no-as-needed -ldispatch -lBlocksRuntime

build/%san/stress: $(SANITIZERS)/stress.c Tests/fuzz/server.c Tests/fuzz/server.h build/%san/lib/libholdfast.so
	@$(CLANG) $(HOST_FLAGS) -fsanitize=$(sanitizer) -shared-libsan -pthread -o $@ $(filter %.c,$^) -L$(@D)/lib -lholdfast -lsodium -ljansson \
	  -Wl,-rpath,$(RUNTIMES) $(if $(findstring tsan,$@),$(DISPATCH))

# ---- runs ----

.PHONY: fuzz test-asan test-tsan test-valgrind sanitize sanitize-replay

fuzz: build/fuzz/fuzz build/fuzz/holdfast.dict | $(PYTHON)
	@Tests/fuzz/run.sh $(MINUTES) $(SEED)

test-asan: build/asan/lib/libholdfast.so build/asan/lib-runtime/libholdfast.so build/asan/stress build/fuzz/fuzz | $(PYTHON)
	@$(SANITIZERS)/run.sh asan $(STRESS_ROUNDS)

test-tsan: build/tsan/lib/libholdfast.so build/tsan/lib-runtime/libholdfast.so build/tsan/stress | $(PYTHON)
	@$(SANITIZERS)/run.sh tsan $(STRESS_ROUNDS)

# The ordinary flavour with its names: what Swift's runtime keeps for good is told by them (valgrind.supp).
build/valgrind/lib-runtime/libholdfast.so.$(ABI): .build-runtime/release/libHoldfastStatic.a .build/holdfast.map
	@mkdir -p $(@D)
	@$(CLANG) -shared -fuse-ld=lld -o $@ -Wl,--whole-archive $< -Wl,--no-whole-archive $(LINK) $(SWIFT_RUNTIME) $(LIBRARIES)
	@strip -g $@

test-valgrind: build/fuzz/replay build/valgrind/lib-runtime/libholdfast.so.$(ABI) | $(PYTHON)
	@$(SANITIZERS)/valgrind.sh all

sanitize: test-asan test-tsan test-valgrind fuzz

# Every part runs, also after one that failed.
sanitize-replay: build/fuzz/fuzz build/fuzz/replay build/asan/stress build/tsan/stress | $(PYTHON)
	@failed=0; Tests/fuzz/run.sh replay || failed=1; $(SANITIZERS)/valgrind.sh day || failed=1; \
	  $(SANITIZERS)/run.sh share 9 || failed=1; exit $$failed
