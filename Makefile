# Holdfast. `make demo` shows it at work, `make test` proves a commit; both install what is missing.
#
#   make setup    installs the Debian packages (with sudo, unless root) and the Python packages in .venv that `make test`
#                 needs and that are missing. setup-demo, setup-tools, setup-all: of the other tiers (mk/setup.mk).
#                 Only these targets, and backend, demo, test, test-all, nightly, desktop and pictures, install anything
#   make lib      build/lib/libholdfast.so (Embedded Swift), build/lib/libholdfast_keys.so, build/include/ and, where libcurl
#                 is installed, build/lib/libholdfast_http.so; archives (.a) of each
#   make lib-runtime  build/lib-runtime/libholdfast.so: the same in ordinary Swift
#   make lib-debug    build/lib-debug/libholdfast.so: unoptimised, built in seconds after a change
#   make bundle   build/lib-bundled/libholdfast.so, which contains SQLite, libsodium and jansson
#   make wheel    build/wheel/holdfast-*.whl, which contains the bundled library
#   make node     build/node/holdfast and its .tgz: the package for Node and Electron, with the bundled library
#   make jvm      build/jvm/*.jar for Java and Kotlin
#   make dist     build/dist: wheels, packages for Node, Java and Debian, bills of materials, sources, checksums (mk/dist.mk)
#   make install  headers, libraries, pkg-config and CMake files below PREFIX (/usr/local); honours DESTDIR, LIBDIR
#   make backend  a local Supabase project with demo people, until Ctrl-C; prints its URL and key
#   make demo     the tour of examples/c against a local backend
#   make desktop  the app of examples/desktop on a local backend, with a panel beside it; make pictures draws docs/pictures
#   make doctor   CONFIG=file (EMAIL=address): checks a configuration against its Supabase project (docs/doctor.md)
#   make lint     style and types; make format corrects what a tool can correct
#   make contract writes the code in git that is made from include/holdfast.schema.json; every make writes the rest
#   make docs     writes the pages and figures that are made from the code and from measurements
#   make lock     writes mk/requirements/*.lock again, after a change of a list beside them
#   make clean    removes what was built; .venv stays
#
# Tests, in three tiers (mk/tests.mk):
#
#   make test      proves a commit: unit tests, the C API on the Embedded library, driver, Python, documents, killed
#                  processes, simulated worlds, the demo. Fixed seeds, no search: eleven minutes on two cores, with set-up
#   .ci/run        make test and lint; ordinary Swift, slow tests in reduced sizes, failing disks, packages, instruction
#                  counts; of the rest what the change touches, by path: half an hour
#   make test-all  everything that ends by itself, in whole sizes
#   make nightly   search: fuzzing, new worlds, random kills, mutants, sanitizers. Prints its seeds
#
# Parts: test-swift test-abi test-http test-python test-docs test-crash test-simulation, test-runtime test-slow
# test-realtime test-replay test-packages test-faults test-fleet test-situations, test-backend test-scale test-model
# test-invariants test-node test-jvm test-swiftkit test-desktop test-languages test-arm64 test-darwin test-musl. TESTS= chooses tests of test-swift,
# test-abi, test-node. HOLDFAST_PATIENCE=4 multiplies every limit of time, for a machine under load.
#
# Longer runs:
#
#   make bench               measures the times of the library (docs/benchmarks.md); QUICK=1 is short
#   make bench-check         compares instructions per call and sizes with the recorded ones
#   make bench-server        measures PostgreSQL with the example's schema at ten million activities (docs/scale.md):
#                            half an hour and 20 GB of disk
#   make fuzz                MINUTES=n: libFuzzer over the C API
#   make sanitize            the tests under ASan, TSan and valgrind
#   make soak                SEEDS=n worlds of the simulation on every core; make replay SEED=n (KEEP=) shows one; FLAVOUR=
#   make arm64               build/lib-arm64/libholdfast.so; make test-arm64 runs tests of it under qemu;
#                            make phones: only the hosts in C, with a heap and files as on Android; make wheel-arm64
#   make musl                build/lib-musl/libholdfast.so, with musl-tools; make test-musl runs scripts, threads and the tour on it
#   make darwin              compiles the core for iOS and macOS (arm64) to objects, which nothing here links or runs
#   make flips               CASES=n data folders with flipped bits; FLAVOUR=
#   make mutants             small faults in Sources, and whether the tests notice them
#   make test-faults-full    every failure of a disk at every point of a scripted day; test-faults takes a sample
#   make test-clean-install  make demo on a Debian that was just installed into a folder; TARGETS="demo test". As root

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := lib

VERSION := $(shell sed -n "s/.*\"\(.*\)\".*/\1/p" Sources/Base/Version.swift)
ABI := $(shell sed -n "s/.*static var abi.*{ \([0-9]*\) }.*/\1/p" Sources/Base/Version.swift)
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
SWIFT ?= swift
# The compiler reports its folder; the path of `swift` may be a link or swiftly's proxy.
TOOLCHAIN := $(shell $(SWIFT) -print-target-info 2> /dev/null | sed -n 's|.*"runtimeResourcePath": "\(.*\)/lib/swift".*|\1|p')
CLANG := $(TOOLCHAIN)/bin/clang
# The tests compile with the toolchain's clang too.
export PATH := $(PATH):$(TOOLCHAIN)/bin
PYTHON := .venv/bin/python
AGAIN := $(MAKE) --no-print-directory

include mk/setup.mk
include mk/library.mk
include mk/embedded.mk
include mk/tests.mk
include mk/sanitizers.mk
include mk/arm64.mk
include mk/darwin.mk
include mk/jvm.mk
include mk/musl.mk
include mk/benchmarks.mk
include mk/server.mk
include mk/node.mk
include mk/desktop.mk
include mk/swiftkit.mk
include mk/dist.mk

.PHONY: lib lib-runtime bundle wheel install backend demo doctor docs contract generate lint format test-clean-install help clean

lib: build/lib/libholdfast.so build/lib/libholdfast_keys.so build/include/holdfast.h $(HTTP_LIBRARY) $(ARCHIVES)
ifeq ($(HTTP_LIBRARY),)
	@echo "libcurl's headers (libcurl4-openssl-dev) are missing: build/lib/libholdfast_http.so is not built"
endif

lib-runtime: build/lib-runtime/libholdfast.so

bundle: build/lib-bundled/libholdfast.so

wheel: bundle | .build/checked-wheel $(PYTHON)
	@bindings/python/build.sh build/lib-bundled build/wheel

install: lib
	@PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) DESTDIR=$(DESTDIR) VERSION=$(VERSION) ABI=$(ABI) bindings/c/install.sh

backend:
	@mk/install-packages.sh $(APT_BACKEND)
	@$(AGAIN) -s .venv/demo
	@PYTHONPATH=Tests/server exec $(PYTHON) -m local_supabase --demo --exports

# In a second make, which sees what apt has installed.
demo:
	@mk/install-packages.sh $(APT_DEMO)
	@$(AGAIN) -j2 .venv/demo build/bin/holdfast-shell
	@examples/c/demo.sh

doctor: build/lib/libholdfast.so | $(PYTHON)
	@PYTHONPATH=bindings/python/src $(PYTHON) -m holdfast doctor '$(CONFIG)' $(if $(EMAIL),--email '$(EMAIL)')

# Tests/docs and Tests/situations check that these pages are current.
docs: | $(PYTHON)
	@$(PYTHON) docs/figures.py --write
	@$(call release,situations,--scratch-path .build-runtime)
	@.build-runtime/release/situations --write

# What the schema determines, in git or not. Tests check that what is in git is current.
contract:
	@python3 mk/contract.py
	@python3 bindings/generate

# What is made from the schema and is not in git: types and operations of the bindings, OpenRPC, the reference. Packages,
# tests and editors read it, so every make sees to it first, as soon as there is a Python.
ifneq ($(shell command -v python3),)
include .build/made.mk
endif
MADE := $(addprefix bindings/python/src/holdfast/,types.py operations.py async_operations.py) \
  $(addprefix bindings/node/src/,types.ts operations.ts) bindings/jvm/generated docs/reference.md include/holdfast.openrpc.json
.PHONY: again
.build/made.mk: include/holdfast.schema.json include/holdfast.h $(KEYS_HEADERS) $(HTTP_HEADERS) Sources/Base/Version.swift Sources/Base/ErrorCode.swift \
    Sources/Policy/MessageCode.swift Sources/Policy/MessagesEnglish.swift mk/contract.py docs/reference.py $(wildcard bindings/generate/*.py) \
    $(if $(filter-out $(wildcard $(MADE)),$(MADE)),again)
	@mkdir -p $(@D)
	@rm -rf bindings/jvm/generated # with the types that the schema no longer has
	@python3 bindings/generate --built
	@python3 mk/contract.py --built
	@python3 docs/reference.py
	@touch $@

C_FILES = $$(git ls-files '*.c' '*.h')
# Python with checked types. mypy takes one suite at a time, as each has a module `conftest`.
TYPED := bindings/generate bindings/jvm/tests bindings/swift/Tests \
  $(addprefix bindings/python/,src tests tools setup.py) $(addprefix Tests/,benchmarks crash mutants packages scale server simulation)

# Every check runs, also after one that failed.
lint: | $(PYTHON)
	@failed=""; check() { "$$@" || failed="$$failed $$(basename "$$1")"; }; \
	check $(SWIFT) format lint -s -r Sources Tests Package.swift bindings/apple bindings/swift; \
	check .venv/bin/clang-format --dry-run -Werror $(C_FILES); \
	check .venv/bin/ruff check -q .; \
	check .venv/bin/ruff format -q --check .; \
	check mk/once.sh Makefile mk/*.mk; \
	check mk/letters.py --check; \
	for typed in $(TYPED); do MYPYPATH=$$typed check .venv/bin/mypy --no-error-summary $$typed; done; \
	[ -z "$$failed" ] || { echo "lint failed:$$failed"; exit 1; }

format: | $(PYTHON)
	@$(SWIFT) format -i -r Sources Tests Package.swift bindings/apple bindings/swift
	@.venv/bin/clang-format -i $(C_FILES)
	@.venv/bin/ruff check -q --fix-only .
	@.venv/bin/ruff format -q .

TARGETS ?= demo
test-clean-install:
	@SWIFT=$(SWIFT) .ci/clean-install $(TARGETS)

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

clean:
	rm -rf build .build .build-*
