# Holdfast. `make demo` shows it at work, `make test` runs every test; both install what is missing.
#
#   make setup    installs the Debian packages (with sudo, unless root) and the Python tools in .venv that are missing;
#                 only this target, and demo and test through it, installs anything. `make test` adds Java, Go and Rust
#   make lib      build/lib/libholdfast.so (Embedded Swift), build/lib-runtime/libholdfast.so (ordinary Swift),
#                 build/include/ and, where libcurl is installed, build/lib/libholdfast_http.so; archives (.a) of both
#   make bundle   build/lib-bundled/libholdfast.so, which contains SQLite, libsodium and jansson
#   make wheel    build/wheel/holdfast-*.whl, which contains the bundled library
#   make node     build/node/holdfast and its .tgz: the package for Node and Electron, with the bundled library
#   make install  headers, libraries, pkg-config and CMake files below PREFIX (/usr/local); honours DESTDIR, LIBDIR
#   make demo     the tour of examples/c against a local backend
#   make desktop  the app of examples/desktop on a local backend, with a panel beside it; installs GTK if it is missing;
#                 make test-desktop runs its tests, make pictures draws docs/pictures
#   make doctor   CONFIG=file (EMAIL=address): checks a configuration against its Supabase project (docs/doctor.md)
#   make test     every test. Parts of it: test-swift, test-model, test-fleet, test-python, test-node, test-simulation,
#                 sanitize-smoke, test-faults, mutants-sample, test-arm64, test-jvm, test-swiftkit, test-darwin
#   make lint     style and types; make format corrects what a tool can correct
#   make contract writes the code that is made from include/holdfast.schema.json; make generate: only bindings
#   make docs     writes the pages and figures that are made from the code and from measurements
#   make lock     writes mk/requirements.lock again, after a change of a file of Python requirements
#   make jvm      build/jvm/*.jar for Java and Kotlin; make test-jvm runs their tests. Both install a JDK if it is missing
#   make clean    removes what was built; .venv stays
#
# Longer runs:
#
#   make bench               measures the library beside a C floor and its peers (docs/benchmarks.md); QUICK=1 is short
#   make bench-check         compares instructions per call and sizes with the recorded ones
#   make bench-variants      records the instructions per call of the bundled library, musl and arm64
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
#   make mutants             small faults in Sources, and whether the tests notice them; make test takes 60
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

.PHONY: lib bundle wheel install demo doctor docs contract generate lint format test-clean-install help clean

lib: build/lib/libholdfast.so build/lib-runtime/libholdfast.so build/include/holdfast.h $(HTTP_LIBRARY) $(ARCHIVES)
ifeq ($(HTTP_LIBRARY),)
	@echo "libcurl's headers (libcurl4-openssl-dev) are missing: build/lib/libholdfast_http.so is not built"
endif

bundle: build/lib-bundled/libholdfast.so

wheel: bundle | .build/checked-wheel $(PYTHON)
	@bindings/python/build.sh build/lib-bundled build/wheel

install: lib
	@PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) DESTDIR=$(DESTDIR) VERSION=$(VERSION) ABI=$(ABI) bindings/c/install.sh

# In a second make, which sees what `setup` has installed.
demo: setup
	@$(AGAIN) lib build/bin/holdfast-tour
	@examples/c/demo.sh

doctor: build/lib/libholdfast.so | $(PYTHON)
	@PYTHONPATH=bindings/python/src $(PYTHON) -m holdfast doctor '$(CONFIG)' $(if $(EMAIL),--email '$(EMAIL)')

# Tests/docs and Tests/PolicyTests check that these pages are current.
docs: | $(PYTHON)
	@$(PYTHON) docs/reference.py --write
	@$(PYTHON) docs/figures.py --write
	@HOLDFAST_WRITE_DOCS=1 $(SWIFT) test -q --disable-xctest --scratch-path .build-test --filter DecisionsDocumentTests

# What the schema determines. Tests check that it is current.
contract: generate | $(PYTHON)
	@$(PYTHON) mk/contract.py

# The types and operations of the bindings (bindings/generate).
generate: | $(PYTHON)
	@$(PYTHON) bindings/generate

C_FILES = $$(git ls-files '*.c' '*.h')
# Python with checked types. mypy takes one suite at a time, as each has a module `conftest`.
TYPED := bindings/generate bindings/jvm/tests bindings/node/test bindings/swift/Tests \
  $(addprefix bindings/python/,src tests tools setup.py) $(addprefix Tests/,benchmarks crash mutants packages scale server simulation)

# Every check runs, also after one that failed.
lint: | $(PYTHON)
	@failed=""; check() { "$$@" || failed="$$failed $$(basename "$$1")"; }; \
	check $(SWIFT) format lint -s -r Sources Tests Package.swift bindings/apple bindings/swift; \
	check .venv/bin/clang-format --dry-run -Werror $(C_FILES); \
	check .venv/bin/ruff check -q .; \
	check .venv/bin/ruff format -q --check .; \
	check mk/once.sh Makefile mk/*.mk; \
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
