# Holdfast. `make demo` shows it at work, `make test` runs every test; both install what is missing.
#
#   make lib      build/lib/libholdfast.so (Embedded Swift), build/lib-runtime/libholdfast.so (ordinary
#                 Swift), build/lib/libholdfast_http.so, build/include/
#   make bundle   build/lib-bundled/libholdfast.so: SQLite, libsodium and jansson inside
#   make wheel    build/wheel/holdfast-*.whl, which carries the bundled library
#   make bench    what the library costs, beside a C floor and its peers: docs/benchmarks.md; QUICK=1 to try it
#   make bench-check  instructions per call and sizes, against what is recorded
#   make install  headers, libraries, pkg-config and CMake files below PREFIX (/usr/local); honours DESTDIR, LIBDIR
#   make fresh    make demo on a Debian that has just been installed into a folder; FRESH="demo test" for both. As root
#   make fuzz     MINUTES=n: libFuzzer over the C API; make sanitize runs the tests under ASan, TSan and valgrind
#   make soak     SEEDS=n worlds of the simulation on every core; make replay SEED=n (KEEP=) shows one; FLAVOUR=
#   make disk     every failure of a disk at every point of a day; make test tries a part
#   make docs     writes the pages and figures that are made from the code and from what was measured
#   make lint     style and types; make format mends what a tool can mend
#   make clean    removes what was built; the tests' Python environment, .venv, stays

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := lib

VERSION := $(shell sed -n "s/.*\"\(.*\)\".*/\1/p" Sources/Base/Version.swift)
# The number in the soname: raised when a function's meaning changes or one goes.
ABI := 1
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
SWIFT ?= swift
# Asked, not guessed from the path: `swift` may be a link, or swiftly's stand-in.
TOOLCHAIN := $(shell $(SWIFT) -print-target-info 2> /dev/null | sed -n 's|.*"runtimeResourcePath": "\(.*\)/lib/swift".*|\1|p')
CLANG := $(TOOLCHAIN)/bin/clang
# The tests compile with the toolchain's clang too.
export PATH := $(PATH):$(TOOLCHAIN)/bin
PYTHON := .venv/bin/python

SOURCES := Package.swift $(shell find Sources -name '*.swift' -o -name '*.c' -o -name '*.h' -o -name '*.modulemap') \
  include/holdfast.h include/module.modulemap
QUIET := 2>&1 | grep -vE '^\[[0-9]+/[0-9]+\]|^Building|^Build of|^$$' || [ $${PIPESTATUS[0]} = 0 ]
HTTP_SOURCES := $(wildcard Sources/HoldfastHTTP/*.c)
LIBRARIES := -lsqlite3 -lsodium -ljansson
# Relative relocations take a bit each instead of 24 bytes, where the C library can read that (glibc 2.36).
# What is built for other machines goes without.
RELR := $(shell getconf GNU_LIBC_VERSION 2> /dev/null | awk '$$2 >= 2.36 {print "-Wl,-z,pack-relative-relocs"}')
# Exported: the header's functions alone. Unloading is impossible (handles and allocator hooks outlive
# it), and every free() zeroes first.
LINK := -Wl,--version-script=.build/holdfast.map,--gc-sections,-z,nodelete,-z,defs,-z,relro,-z,now,--icf=all \
  -Wl,--wrap=free -Wl,-soname,libholdfast.so.$(ABI)
# What a program that was linked against the build tree looks for when it runs.
SONAME_LINK = @ln -sf $(@F) $@.$(ABI)

.PHONY: docs test-fleet test-model test-simulation help lib bundle wheel deps demo test format lint install fresh clean test-swift test-python soak replay test-disk disk

lib: build/lib/libholdfast.so build/lib-runtime/libholdfast.so build/lib/libholdfast_http.so build/include/holdfast.h

# ---- what is needed ----

APT := libsqlite3-dev libsodium-dev libjansson-dev libcurl4-openssl-dev postgresql python3-venv binutils g++ pkg-config spin curl ca-certificates
# For the bundled library, the tests of what is installed, and the tests under valgrind.
APT_TEST := valgrind dpkg-dev patch xz-utils tcl autoconf automake libtool cmake libsecret-1-dev gnome-keyring dbus
REQUIREMENTS := $(wildcard .ci/requirements.txt Tests/*/requirements.txt bindings/python/requirements*.txt)

deps: .build/deps.stamp .venv/stamp

# Installs the packages that are missing among those given.
define need
missing=""; for package in $(1); do \
  dpkg-query -W -f='$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$package"; done; \
if [ -n "$$missing" ]; then \
  echo "installing:$$missing"; \
  sudo=""; [ "$$(id -u)" = 0 ] || sudo=sudo; \
  $$sudo apt-get update -qq > .build/apt.log 2>&1 || { cat .build/apt.log; exit 1; }; \
  $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >> .build/apt.log 2>&1 \
    || { tail -20 .build/apt.log; exit 1; }; fi
endef

.build/deps.stamp: Makefile
	@mkdir -p .build
	@$(SWIFT) --version 2> /dev/null | grep -qE 'Swift version (6\.([3-9]|[1-9][0-9])|[7-9])' \
	  || { echo "Swift 6.3 or newer must be on the PATH: https://www.swift.org/install"; exit 1; }
	@$(call need,$(APT))
	@touch $@

.build/deps-test.stamp: .build/deps.stamp
	@$(call need,$(APT_TEST))
	@touch $@

.venv/stamp: $(REQUIREMENTS) .build/deps.stamp
	@[ -x .venv/bin/python ] || python3 -m venv .venv
	@.venv/bin/python -m pip install -q --disable-pip-version-check $(foreach file,$(REQUIREMENTS),-r $(file))
	@touch $@

# ---- the libraries ----

.build/holdfast.map: Makefile
	@mkdir -p .build
	@echo 'HOLDFAST_1 { global: holdfast_*; local: *; };' > $@

.build/holdfast_http.map: Makefile
	@mkdir -p .build
	@echo 'HOLDFAST_HTTP_1 { global: holdfast_http_*; local: *; };' > $@

# Small first: the database and the disk take the time, not our instructions. Sections by function let the linker
# drop the copies that generic code leaves behind. A function that takes a closure is not copied for every closure.
SMALL := -Osize -enforce-exclusivity=unchecked -Xfrontend -function-sections -Xllvm -enable-machine-outliner=always \
  -Xllvm -enable-linkonceodr-outlining -Xllvm -sil-disable-pass=closure-specialize

# The archive is made anew: SwiftPM leaves the objects of files that are gone in an old one.
.build-embedded/release/libHoldfastStatic.a: $(SOURCES) | .build/deps.stamp
	@rm -f $@
	@$(SWIFT) build -c release --traits Embedded --scratch-path .build-embedded --product HoldfastStatic \
	  $(foreach flag,$(SMALL),-Xswiftc $(flag)) $(QUIET)

build/lib/libholdfast.so: .build-embedded/release/libHoldfastStatic.a .build/holdfast.map
	@mkdir -p build/lib
	@$(CLANG) -shared -fuse-ld=lld -o $@ -Wl,--whole-archive $< -Wl,--no-whole-archive $(LINK) $(RELR) $(LIBRARIES) -lm
	@strip $@
	$(SONAME_LINK)

.build-runtime/release/libHoldfastStatic.a: $(SOURCES) | .build/deps.stamp
	@rm -f $@
	@$(SWIFT) build -c release --scratch-path .build-runtime --product HoldfastStatic $(QUIET)

build/lib-runtime/libholdfast.so: .build-runtime/release/libHoldfastStatic.a .build/holdfast.map
	@mkdir -p build/lib-runtime
	@$(CLANG) -shared -fuse-ld=lld -o $@ -Wl,--whole-archive $< -Wl,--no-whole-archive $(TOOLCHAIN)/lib/swift_static/linux/$(shell uname -m)/swiftrt.o \
	  -L$(TOOLCHAIN)/lib/swift_static/linux -lswiftCore $(LINK) $(LIBRARIES) -lstdc++ -lm -ldl -pthread
	@strip $@
	$(SONAME_LINK)

build/lib/libholdfast_http.so: $(HTTP_SOURCES) $(wildcard Sources/HoldfastHTTP/*.h Sources/HoldfastHTTP/include/*.h) build/lib/libholdfast.so .build/holdfast_http.map
	@$(CLANG) -shared -fPIC -O2 -fvisibility=hidden -Wall -Wextra -Werror -pthread -Iinclude -ISources/HoldfastHTTP/include \
	  -o $@ $(HTTP_SOURCES) -Wl,--version-script=.build/holdfast_http.map,-z,nodelete,-z,relro,-z,now,-soname,libholdfast_http.so.$(ABI) -Lbuild/lib -lholdfast -lcurl -ljansson -Wl,-rpath,'$$ORIGIN'
	@strip $@
	$(SONAME_LINK)

build/include/holdfast.h: include/holdfast.h include/holdfast.schema.json include/module.modulemap \
    $(wildcard Sources/HoldfastHTTP/include/*.h)
	@mkdir -p build/include
	@cp include/holdfast.h include/holdfast.schema.json include/module.modulemap $(wildcard Sources/HoldfastHTTP/include/*.h) build/include/

# ---- for Python's wheel and app bundles: nothing needed but the C library ----

.build/bundle/lib/libjansson.a: bindings/bundle/dependencies.sh bindings/bundle/sources.sh | .build/deps-test.stamp
	@CC=cc bindings/bundle/dependencies.sh .build/bundle

build/lib-bundled/libholdfast.so: .build-embedded/release/libHoldfastStatic.a .build/holdfast.map .build/bundle/lib/libjansson.a
	@mkdir -p $(@D)
	@$(CLANG) -shared -fuse-ld=lld -o $@ -Wl,--whole-archive $< -Wl,--no-whole-archive $(LINK) .build/bundle/lib/*.a -lm
	@strip $@
	$(SONAME_LINK)
	@cp .build/bundle/licenses/* $(@D)

bundle: build/lib-bundled/libholdfast.so

wheel: bundle .venv/stamp
	@bindings/python/build.sh build/lib-bundled build/wheel

# ---- the tour ----

# With the desktop's key store where libsecret is installed; SECRET= builds without it.
SECRET ?= $(shell pkg-config --exists libsecret-1 && echo -DHOLDFAST_LIBSECRET && pkg-config --cflags --libs libsecret-1)

build/bin/holdfast-tour: $(wildcard examples/c/*.c examples/c/*.h) lib
	@mkdir -p build/bin
	@$(CLANG) -std=c11 -O1 -g -Wall -Wextra -Werror -Iinclude -ISources/HoldfastHTTP/include -o $@ $(wildcard examples/c/*.c) \
	  $(SECRET) -Lbuild/lib -lholdfast -lholdfast_http -ljansson -lcurl -pthread -Wl,-rpath,'$$ORIGIN/../lib'

demo: deps lib build/bin/holdfast-tour
	@examples/c/demo.sh

# ---- tests ----

test: deps .build/deps-test.stamp lib wheel build/bin/holdfast-tour
	@failed=""; for part in test-swift test-model test-fleet test-python test-simulation test-hostile test-disk; do $(MAKE) --no-print-directory $$part || failed="$$failed $$part"; done; \
	  [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

test-swift:
	@$(SWIFT) test --disable-xctest --scratch-path .build-test 2>&1 | grep -vP '^\[\d+/\d+\]|^◇|started\.$$|✔ (?!Test run).* passed' \
	  || [ $${PIPESTATUS[0]} = 0 ]

# The rules of Sources/Policy in 100,000 simulated devices; the figure is docs/fleet.svg.
test-fleet:
	@mkdir -p build/fleet
	@$(SWIFT) build -c release --scratch-path .build-runtime --product fleet $(QUIET)
	@.build-runtime/release/fleet build/fleet
	@$(PYTHON) -m pytest -q -p no:cacheprovider Tests/fleet

# The session protocol, every order of its steps within the bounds of Tests/model/check.sh.
test-model:
	@Tests/model/check.sh

test-python:
	@failed=""; for suite in Tests/backend Tests/http Tests/abi Tests/crash Tests/packages Tests/docs bindings/python; do \
	  echo "$$suite"; $(PYTHON) -m pytest -q -p no:cacheprovider -n 2 $$suite || failed="$$failed $$suite"; done; \
	  [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# 1,000 seeds of the simulation, on both builds, and a lie against each of its invariants.
test-simulation: deps lib
	@$(PYTHON) -m pytest -q -p no:cacheprovider -n 2 Tests/simulation

SIMULATION := PYTHONPATH=Tests/simulation $(PYTHON)
soak: deps lib
	@$(SIMULATION) Tests/simulation/soak.py --seeds $(or $(SEEDS),10000) --first $(or $(FIRST),0) --flavour $(or $(FLAVOUR),embedded)

replay: deps lib
	@$(SIMULATION) -m simulation --seed $(SEED) $(if $(KEEP),--keep $(KEEP)) --flavour $(or $(FLAVOUR),embedded)

# Power cuts, failing operations and refused memory (Tests/disk). Seeds and shares as run.sh takes them.
build/bin/holdfast-disk: $(wildcard Tests/disk/*.c Tests/disk/*.h) lib
	@mkdir -p build/bin
	@$(CLANG) -std=gnu11 -O1 -g -Wall -Wextra -Werror -rdynamic -Iinclude -o $@ $(wildcard Tests/disk/*.c) \
	  -Lbuild/lib -lholdfast -lsqlite3 -ljansson -lsodium

test-disk: deps lib build/bin/holdfast-disk
	@Tests/disk/run.sh 1 40 60

disk: deps lib build/bin/holdfast-disk
	@Tests/disk/run.sh 4 1 1

include Tests/benchmarks/benchmarks.mk
include Tests/sanitizers/sanitizers.mk

# ---- documentation ----

# What is made from the headers, the schema, the rules and the last runs; Tests/docs and Tests/PolicyTests hold it current.
docs: .venv/stamp
	@$(PYTHON) docs/reference.py --write
	@$(PYTHON) docs/figures.py --write
	@HOLDFAST_WRITE_DOCS=1 $(SWIFT) test --disable-xctest --scratch-path .build-test --filter DecisionsDocumentTests $(QUIET)

# ---- house ----

C_FILES = $$(git ls-files '*.c' '*.h')
# Folders whose Python is type-checked, one at a time: each suite has a module `conftest`.
TYPED := bindings/python/src bindings/python/tests bindings/python/tools bindings/python/setup.py \
  $(addprefix Tests/,benchmarks crash packages server simulation)

format: deps
	@$(SWIFT) format -i -r Sources Tests Package.swift
	@.venv/bin/clang-format -i $(C_FILES)
	@.venv/bin/ruff check -q --fix-only .
	@.venv/bin/ruff format -q .

# Every check runs, also when one before it found something.
lint: deps
	@failed=""; check() { "$$@" || failed="$$failed $$1"; }; \
	check $(SWIFT) format lint -s -r Sources Tests Package.swift; \
	check .venv/bin/clang-format --dry-run -Werror $(C_FILES); \
	check .venv/bin/ruff check -q .; \
	check .venv/bin/ruff format -q --check .; \
	for typed in $(TYPED); do check env MYPYPATH=$$typed .venv/bin/mypy $$typed; done; \
	[ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

install: lib
	@PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) DESTDIR=$(DESTDIR) VERSION=$(VERSION) ABI=$(ABI) bindings/c/install.sh

FRESH ?= demo
fresh:
	@SWIFT=$(SWIFT) .ci/fresh $(FRESH)

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

clean:
	rm -rf build .build .build-*
