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
PYTEST := $(PYTHON) -m pytest -q -rs --durations=20
# One more than there are cores: tests wait for the disk a fifth of the time.
WORKERS := $(shell echo $$(($$(nproc) + 1)))
# What `make test` runs of a suite; `slow` runs in CI, in reduced sizes, and `realtime` alone.
FAST := -m 'not slow and not realtime'
FLAVOUR ?= embedded

# ---- make test ----

TEST_PARTS := test-swift test-http test-abi test-python test-docs test-crash test-simulation run-demo

# The builds of the library (release) and of the unit tests (debug) run beside each other, and beside pip.
test:
	@mk/install-packages.sh $(APT_TEST)
	@$(AGAIN) -j3 .venv/test lib build/bin/holdfast-tour unit-tests
	@$(call each,$(TEST_PARTS))

.PHONY: unit-tests test-swift test-situations test-abi test-http test-python test-docs test-crash run-demo

SWIFT_TESTS := --disable-xctest --scratch-path .build-test

unit-tests: | .build/checked-lib
	@$(SWIFT) build -q --build-tests $(SWIFT_TESTS)

# TESTS=filter runs some of them.
test-swift: unit-tests
	@$(SWIFT) test -q --skip-build $(SWIFT_TESTS) $(TESTS:%=--filter %)

test-abi: | $(PYTHON)
	@HOLDFAST_FLAVOUR=$(FLAVOUR) $(PYTEST) -n $(WORKERS) $(FAST) $(or $(TESTS),Tests/abi)

test-http test-docs: test-%: | $(PYTHON)
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) -n $(WORKERS) $(FAST) Tests/$*

test-python: | $(PYTHON)
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) -n $(WORKERS) $(FAST) bindings/python
	@$(PYTEST) $(FAST) bindings/generate

test-crash: | $(PYTHON)
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) -n $(WORKERS) $(FAST) Tests/crash

run-demo: build/bin/holdfast-tour
	@examples/c/demo.sh

# ---- what CI adds (.ci/run) ----

.PHONY: test-runtime test-slow test-realtime test-backend test-packages test-languages test-model test-fleet test-faults

# The tests that a compiler's mode can change, on the library in ordinary Swift.
test-runtime: build/lib-runtime/libholdfast.so | $(PYTHON)
	@HOLDFAST_FLAVOUR=runtime $(PYTEST) -n $(WORKERS) -m 'both_flavours and not slow and not realtime' Tests/abi

SLOW_SUITES := Tests/http Tests/abi Tests/crash Tests/simulation Tests/docs bindings/python

# HOLDFAST_SIZE=full for the whole sizes.
test-slow: | $(PYTHON)
	@failed=""; for suite in $(SLOW_SUITES); do grep -rqs 'mark\.slow' $$suite || continue; echo "$$suite"; \
	  HOLDFAST_FLAVOUR=embedded $(PYTEST) -n $(WORKERS) -m 'slow and not realtime' $$suite || failed="$$failed $$suite"; done; \
	  [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# Nothing else runs beside them.
test-realtime: | $(PYTHON)
	@failed=""; for suite in $(SLOW_SUITES); do grep -rqs 'mark\.realtime' $$suite || continue; echo "$$suite"; \
	  HOLDFAST_FLAVOUR=embedded $(PYTEST) -n 0 -m realtime $$suite || failed="$$failed $$suite"; done; \
	  [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# The local backend, against recordings of the real servers and their own clients.
test-backend: | $(PYTHON)
	@$(PYTEST) -n $(WORKERS) Tests/backend

# The wheel, the installed library from C, what the packages contain.
test-packages: lib wheel | $(PYTHON)
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) -n $(WORKERS) -m 'not languages' Tests/packages

# The examples in Java, Go and Rust.
test-languages: lib | $(PYTHON)
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) -n 2 -m languages Tests/packages

# Every order of the session protocol's steps, within the bounds of Tests/model/check.sh.
test-model:
	@Tests/model/check.sh

# ---- release programs on the rules of Sources/Policy ----

# The rules in 100,000 simulated devices, on the capacity that Tests/scale recorded.
test-fleet: | $(PYTHON)
	@mkdir -p build/fleet
	@$(SWIFT) build -q -c release --scratch-path .build-runtime --product fleet
	@$(PYTHON) Tests/fleet/capacity.py .build-runtime/release/fleet build/fleet
	@$(PYTEST) Tests/fleet

# ---- the simulation ----

.PHONY: test-simulation soak replay

# HOLDFAST_SEEDS new seeds and every one that failed once.
test-simulation: | $(PYTHON)
	@HOLDFAST_FLAVOUR=embedded $(PYTEST) -n 2 $(FAST) Tests/simulation

SIMULATION := PYTHONPATH=Tests/simulation $(PYTHON)

soak: lib | $(PYTHON)
	@$(SIMULATION) Tests/simulation/soak.py --seeds $(or $(SEEDS),10000) --first $(or $(FIRST),0) --flavour $(FLAVOUR)

replay: lib | $(PYTHON)
	@$(SIMULATION) -m simulation --seed $(SEED) $(if $(KEEP),--keep $(KEEP)) $(if $(WORLD),--world $(WORLD)) --flavour $(FLAVOUR)

# ---- mutants: small faults in Sources, each of which a test has to notice (Tests/mutants) ----

.PHONY: mutants mutants-sample

MUTANTS := PYTHONPATH=Tests/mutants $(PYTHON) -B -m

mutants: | $(PYTHON)
	@$(MUTANTS) mutants $(ARGUMENTS)

mutants-sample: | $(PYTHON)
	@$(MUTANTS) mutants.sample $(ARGUMENTS)

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

# ---- the tour of examples/c ----

# With the desktop's key store where libsecret is installed; `SECRET=` builds without it.
SECRET ?= $(shell pkg-config --exists libsecret-1 2> /dev/null && echo -DHOLDFAST_LIBSECRET && pkg-config --cflags --libs libsecret-1)

build/bin/holdfast-tour: $(wildcard examples/c/*.c examples/c/*.h) include/holdfast.h $(HTTP_HEADERS) \
    build/lib/libholdfast.so build/lib/libholdfast_http.so
	@mkdir -p $(@D)
	@$(CLANG) -std=c11 -O1 -g -Wall -Wextra -Werror -Iinclude -ISources/HoldfastHTTP/include -o $@ $(wildcard examples/c/*.c) \
	  $(SECRET) -Lbuild/lib -lholdfast -lholdfast_http -ljansson -lcurl -pthread -Wl,-rpath,'$$ORIGIN/../lib'
