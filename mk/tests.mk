# The tests. Each part runs alone as well, once `make setup` has run.

.PHONY: test test-swift test-model test-fleet test-python test-node test-simulation test-faults test-faults-full soak replay

# Other parts are in mk/sanitizers.mk, arm64.mk, darwin.mk, node.mk, jvm.mk, swiftkit.mk and desktop.mk.
TEST_PARTS := test-swift test-model test-fleet test-python test-node test-simulation sanitize-smoke test-faults mutants-sample test-arm64 test-jvm test-swiftkit test-desktop test-darwin
PYTEST := $(PYTHON) -m pytest -q
# One more than there are cores: tests wait for the disk a fifth of the time.
WORKERS := $(shell echo $$(($$(nproc) + 1)))
FLAVOUR ?= embedded

# In other makes, which see what `setup` has installed. Every part runs, also after one that failed.
test: setup languages
	@$(AGAIN) -j2 lib wheel build/bin/holdfast-tour
	@failed=""; for part in $(TEST_PARTS); do echo "== $$part"; SECONDS=0; $(AGAIN) $$part || failed="$$failed $$part"; \
	  echo "$$part took $$SECONDS s"; done; \
	  [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

test-swift:
	@$(SWIFT) test -q --disable-xctest --scratch-path .build-test

# Every order of the session protocol's steps, within the bounds of Tests/model/check.sh.
test-model:
	@Tests/model/check.sh

# The rules of Sources/Policy in 100,000 simulated devices, on the capacity that Tests/scale recorded.
test-fleet: | $(PYTHON)
	@mkdir -p build/fleet
	@$(SWIFT) build -q -c release --scratch-path .build-runtime --product fleet
	@$(PYTHON) Tests/fleet/capacity.py .build-runtime/release/fleet build/fleet
	@$(PYTEST) Tests/fleet

PYTHON_SUITES := $(addprefix Tests/,backend http abi crash mutants packages scale docs) bindings/generate bindings/python

# Of the tests through the C API every third one in ordinary Swift, too (Tests/abi/conftest.py).
test-python: export HOLDFAST_SAMPLE ?= 3
test-python: | $(PYTHON)
	@failed=""; for suite in $(PYTHON_SUITES); do \
	  echo "$$suite"; $(PYTEST) -n $(WORKERS) $$suite || failed="$$failed $$suite"; done; \
	  [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# ---- the simulation ----

# 1,000 seeds on both flavours, and a mutant for each invariant.
test-simulation: lib | $(PYTHON)
	@$(PYTEST) -n 2 Tests/simulation

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

# 10,000 copies of a data folder, each with one to eight flipped bits; `make test` has 300.
flips: lib | $(PYTHON)
	@HOLDFAST_FLAVOUR=$(FLAVOUR) HOLDFAST_FLIPS=$(or $(CASES),10000) HOLDFAST_FLIPS_FIRST=$(or $(FIRST),1) \
	  $(PYTEST) -s Tests/abi/test_flips.py

# ---- power cuts, failing operations and refused memory (Tests/disk) ----

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
