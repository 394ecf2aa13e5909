# The tests, in three tiers. `make test` proves a commit, with fixed seeds and no search; `.ci/run` adds what a change
# touches; `make test-all` is everything that ends by itself; `make nightly` searches, and prints its seeds.
# Each part runs alone as well, once its tier's set-up has run (mk/setup.mk).

.PHONY: test test-all nightly

# $(call each,PARTS): every part in a make of its own, also after one that failed, and how long it took.
each = failed=""; for part in $(1); do echo "== $$part"; SECONDS=0; $(AGAIN) $$part || failed="$$failed $$part"; \
  echo "$$part took $$SECONDS s"; done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# HOLDFAST_PATIENCE multiplies every limit of time, for a machine under load.
HOLDFAST_PATIENCE ?= 1
export HOLDFAST_PATIENCE
export PYTEST_TIMEOUT ?= $(shell echo $$((300 * $(HOLDFAST_PATIENCE))))
# Compiled once for all processes that tests start, beside the sources and not among them.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/.build/pycache
PYTEST := $(PYTHON) -m pytest -q -rs --durations=20
# One more than there are cores: tests wait for the disk a fifth of the time.
WORKERS := $(shell echo $$(($$(nproc) + 1)))
# What `make test` runs of a suite; `slow` runs in CI, in reduced sizes, and `realtime` alone.
FAST := -m 'not slow and not realtime'
FLAVOUR ?= embedded
# $(call suites,SUITES,OPTIONS): pytest on each, also after one that failed. 5: nothing in it is meant by the options.
suites = failed=""; for suite in $(1); do echo "$$suite"; $(PYTEST) $(2) $$suite || [ $$? = 5 ] || failed="$$failed $$suite"; \
  done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# ---- make test ----

TEST_PARTS := test-swift test-http test-abi test-python test-docs test-crash test-simulation run-demo

# The builds of the library (release) and of the unit tests (debug) run beside each other, and beside pip.
test:
	@mk/install-packages.sh $(APT_TEST)
	@$(AGAIN) -j3 .venv/test lib $(HOSTS) unit-tests
	@$(call each,$(TEST_PARTS))

.PHONY: unit-tests test-swift test-situations test-abi test-http test-python test-docs test-crash run-demo

# Without debug information: it takes a sixth of the build. Other options would compile everything again.
SWIFT_TESTS := --disable-xctest -debug-info-format none --scratch-path .build-test

# The program of all tests, and of the package only what they need.
unit-tests: | .build/checked-lib
	@$(SWIFT) build -q --product HoldfastPackageTests $(SWIFT_TESTS)

# Their folders are in memory where a gigabyte of it is free: what a disk does to the library is tested in Tests/disk.
MEMORY = $(shell [ "$$(df --output=avail -k /dev/shm 2> /dev/null | tail -n 1)" -gt 1000000 ] 2> /dev/null && echo TMPDIR=/dev/shm)

# TESTS=filter runs some of them.
test-swift: unit-tests
	@$(MEMORY) $(SWIFT) test -q --skip-build $(SWIFT_TESTS) $(TESTS:%=--filter %)

test-abi: | $(PYTHON)
	@HOLDFAST_FLAVOUR=$(FLAVOUR) $(PYTEST) -n $(WORKERS) $(FAST) $(or $(TESTS),Tests/abi)

test-http test-docs: test-%: | $(PYTHON)
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) -n $(WORKERS) $(FAST) Tests/$*

test-python: | $(PYTHON)
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) -n $(WORKERS) $(FAST) bindings/python
	@$(PYTEST) $(FAST) bindings/generate

test-crash: | $(PYTHON)
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) -n $(WORKERS) $(FAST) Tests/crash

run-demo: build/bin/holdfast-shell
	@examples/c/demo.sh

# ---- what CI adds (.ci/run) ----

.PHONY: test-runtime test-slow test-realtime test-backend test-packages test-languages test-model test-fleet test-faults
.PHONY: test-scale test-mutants

# The tests that a compiler's mode can change, on the library in ordinary Swift.
test-runtime: build/lib-runtime/libholdfast.so | $(PYTHON)
	@HOLDFAST_FLAVOUR=runtime $(PYTEST) -n $(WORKERS) -m 'both_flavours and not slow and not realtime' Tests/abi

SLOW_SUITES := Tests/http Tests/abi Tests/crash Tests/docs bindings/python

test-slow test-realtime: export HOLDFAST_FLAVOUR := embedded

# HOLDFAST_SIZE=full for the whole sizes.
test-slow: | $(PYTHON)
	@$(call suites,$(SLOW_SUITES),-n $(WORKERS) -m 'slow and not realtime')

# Nothing else runs beside them.
test-realtime: | $(PYTHON)
	@$(call suites,$(SLOW_SUITES),-n 0 -m realtime)

# The local backend, against recordings of the real servers and their own clients.
test-backend: | $(PYTHON)
	@$(PYTEST) -n $(WORKERS) Tests/backend

# The wheel, the installed library from C, what the packages contain.
test-packages: lib lib-runtime wheel | $(PYTHON)
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) -n $(WORKERS) -m 'not slow and not languages' Tests/packages

# The examples in Java, Go and Rust.
test-languages: lib | $(PYTHON)
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) -n 2 -m languages Tests/packages

# The plans of the example's schema at many rows.
test-scale: | $(PYTHON)
	@$(PYTEST) -n 2 Tests/scale

# The tool that looks for mutants, not the mutants.
test-mutants: | $(PYTHON)
	@$(PYTEST) Tests/mutants

# Every order of the session protocol's steps, within the bounds of Tests/model/check.sh.
test-model:
	@Tests/model/check.sh

# ---- release programs on the rules of Sources/Policy ----

# Every situation of a session, the decision on it, and what other statements of the rules say (Tests/PolicyOracle).
test-situations: | .build/checked-lib
	@$(call release,situations,--scratch-path .build-runtime)
	@.build-runtime/release/situations

# The rules in 100,000 simulated devices, on the capacity that Tests/scale recorded.
test-fleet: | $(PYTHON)
	@mkdir -p build/fleet
	@$(call release,fleet,--scratch-path .build-runtime)
	@$(PYTHON) Tests/fleet/capacity.py .build-runtime/release/fleet build/fleet
	@$(PYTEST) Tests/fleet

# ---- the simulation ----

.PHONY: test-simulation test-replay test-invariants soak replay

# HOLDFAST_SEEDS new seeds and every one that failed once.
test-simulation: | $(PYTHON)
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) -n 2 $(FAST) Tests/simulation

# Both flavours take the same decisions in the same world.
test-replay: lib lib-runtime | $(PYTHON)
	@$(PYTEST) -n 2 Tests/simulation/test_replay.py

# Every invariant reports what is injected against it. (`test-arm64` compares processors, with a library of now.)
test-invariants: lib | $(PYTHON)
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) -n 2 -m slow --ignore=Tests/simulation/test_processors.py Tests/simulation

SIMULATION := PYTHONPATH=Tests/simulation $(PYTHON)

soak: lib | $(PYTHON)
	@$(SIMULATION) Tests/simulation/soak.py --seeds $(or $(SEEDS),10000) --first $(or $(FIRST),0) --flavour $(FLAVOUR)

replay: lib | $(PYTHON)
	@$(SIMULATION) -m simulation --seed $(SEED) $(if $(KEEP),--keep $(KEEP)) $(if $(WORLD),--world $(WORLD)) --flavour $(FLAVOUR)

# ---- mutants: small faults in Sources, each of which a test has to notice (Tests/mutants) ----

.PHONY: mutants

MUTANTS := PYTHONPATH=Tests/mutants $(PYTHON) -B -m

mutants: | $(PYTHON)
	@$(MUTANTS) mutants $(ARGUMENTS)

# ---- flipped bits ----

.PHONY: flips

# 10,000 copies of a data folder, each with one to eight flipped bits.
flips: lib | $(PYTHON)
	@HOLDFAST_FLAVOUR=$(FLAVOUR) HOLDFAST_FLIPS=$(or $(CASES),10000) HOLDFAST_FLIPS_FIRST=$(or $(FIRST),1) \
	  $(PYTEST) -s Tests/abi/test_flips.py

# ---- power cuts, failing operations and refused memory (Tests/disk) ----

.PHONY: test-faults-full

build/bin/holdfast-disk: $(wildcard Tests/disk/*.c Tests/disk/*.h) build/lib/libholdfast.so include/holdfast.h
	@mkdir -p $(@D)
	@$(CLANG) -std=gnu11 -O1 -g -Wall -Wextra -Werror -rdynamic -Iinclude -o $@ $(wildcard Tests/disk/*.c) \
	  -Lbuild/lib -lholdfast -lsqlite3 -ljansson -lsodium

# Arguments: seeds of the power cuts; one in so many of the failing operations; of the refused allocations.
test-faults: lib build/bin/holdfast-disk
	@Tests/disk/run.sh 1 40 60

test-faults-full: lib build/bin/holdfast-disk
	@Tests/disk/run.sh 4 1 1

# ---- examples/c ----

C_SHELL := $(addprefix examples/c/,shell.c keychain.c keychain.h)
HOSTS := build/bin/holdfast-shell build/bin/visits
build/bin/holdfast-shell: $(C_SHELL)
build/bin/visits: examples/c/visits.c
$(HOSTS): include/holdfast.h $(HTTP_HEADERS) build/lib/libholdfast.so build/lib/libholdfast_http.so
	@mkdir -p $(@D)
	@$(CLANG) -std=c11 -O1 -g -Wall -Wextra -Werror -Iinclude -ISources/HoldfastHTTP/include -o $@ $(filter examples/%.c,$^) \
	  -Lbuild/lib -lholdfast -lholdfast_http -ljansson -pthread -Wl,-rpath,'$$ORIGIN/../lib'

# ---- everything ----

.PHONY: test-all-abi test-all-suites test-all-packages

# The parts in the order of what they find first: those that use all cores; those that use one, beside each other, the
# longest first; those that measure, alone.
ALL_PARTS := lint test-swift test-situations test-all-abi test-all-suites test-faults test-fleet test-all-packages
ALL_BESIDE := test-desktop test-arm64 test-musl sanitize-replay test-darwin test-backend test-swiftkit test-jvm test-model \
  test-node test-scale test-mutants
ALL_ALONE := test-realtime bench-check bench-short run-demo

# Whole sizes, every flavour, language and processor that can be had here. All that is installed is installed first.
test-all: export HOLDFAST_SIZE := full
test-all: export HOLDFAST_SEEDS ?= 300
test-all: export HOLDFAST_FLAVOURS := all
test-all: setup-all
	@$(AGAIN) -j3 lib lib-runtime wheel unit-tests $(HOSTS)
	@bad=""; ($(call each,$(ALL_PARTS))) || bad=1; $(AGAIN) -k -j3 -O $(ALL_BESIDE) || bad=1; \
	  ($(call each,$(ALL_ALONE))) || bad=1; [ -z "$$bad" ]

# Every test through the C API on the library that is shipped, in its whole size; of the same sources in ordinary Swift, and
# of the library of the wheel, which has other SQLite and libsodium, what depends on such things.
test-all-abi: | $(PYTHON)
	@failed=""; run() { echo "$$1"; HOLDFAST_FLAVOUR=$$1 $(PYTEST) -n $(WORKERS) -m "$$2" Tests/abi || failed="$$failed $$1"; }; \
	  run embedded 'not realtime'; run runtime 'both_flavours and not realtime'; \
	  run bundled 'both_flavours and not slow and not realtime'; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

test-all-suites: | $(PYTHON)
	@$(call suites,$(addprefix Tests/,http docs crash simulation) bindings/generate bindings/python,-n $(WORKERS) -m 'not realtime')

test-all-packages: | $(PYTHON)
	@$(PYTEST) -n $(WORKERS) Tests/packages

# ---- search ----

# Every search runs, prints its seed, and goes on where another one has found something.
nightly: export HOLDFAST_SIZE := full
nightly: export HOLDFAST_FLAVOURS := all
nightly: setup-all
	@$(AGAIN) -j3 lib lib-runtime wheel $(HOSTS)
	@$(call each,nightly-soak nightly-kills nightly-examples test-faults-full mutants sanitize flips \
	  bench-flat)
	@$(AGAIN) test-clean-install TARGETS='demo test'

.PHONY: nightly-soak nightly-kills nightly-examples

NEW_SEED = $$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')

nightly-soak:
	@first=$(NEW_SEED); echo "soak: first seed $$first"; $(AGAIN) soak SEEDS=$(or $(SEEDS),20000) FIRST=$$first

nightly-kills: | $(PYTHON)
	@HOLDFAST_CRASH_SEED=$(NEW_SEED) HOLDFAST_CRASH_SCENARIOS=200 $(PYTEST) -n $(WORKERS) Tests/crash

# Property tests with other examples than the gate's.
nightly-examples: | $(PYTHON)
	@for suite in Tests/abi Tests/backend bindings/python; do seed=$(NEW_SEED); echo "$$suite: --hypothesis-seed=$$seed"; \
	  $(PYTEST) -n $(WORKERS) --hypothesis-profile=default --hypothesis-seed=$$seed $$(grep -rl 'hypothesis' $$suite --include='test_*.py') || failed=1; \
	  done; [ -z "$${failed:-}" ]
