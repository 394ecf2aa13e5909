# What building and testing need: `make setup` installs it, every other target checks it (mk/check.sh).

# Debian packages: of `make lib`; of the driver; of the bundled library and the wheel; of demo and tests.
APT := libsqlite3-dev libsodium-dev libjansson-dev binutils g++ pkg-config
APT += libcurl4-openssl-dev
APT += ca-certificates dpkg-dev patch xz-utils tcl autoconf automake libtool python3-venv
APT += postgresql valgrind strace spin curl cmake locales qemu-user libsecret-1-dev gnome-keyring dbus libglib2.0-dev
# The package for Node. It is tested with the Node of the PATH, or else with the one in .venv.
APT += node-typescript
# The Python packages that are used by name, and the lock, which has the packages that these need, too.
REQUIREMENTS := $(wildcard .ci/requirements.txt Tests/*/requirements.txt bindings/python/requirements*.txt)

LOCK := mk/requirements.lock

.PHONY: setup languages lock

setup:
	@mkdir -p .build
	@mk/install-packages.sh $(APT)
	@$(AGAIN) -s .venv/stamp

# Java, Go and Rust, for the tests of examples/java, examples/go and examples/rust, which are skipped without them.
languages:
	@mkdir -p .build
	@mk/install-languages.sh

# Only `setup` asks for this file; others ask for the interpreter, without a time of its own.
.venv/stamp: $(LOCK)
	@[ -x .venv/bin/python ] || python3 -m venv .venv
	@.venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r $(LOCK)
	@touch $@

# After a change of a requirements file.
lock:
	@mk/lock-requirements.sh $(LOCK) $(REQUIREMENTS)

.venv/bin/python:
	@echo "the Python tools in .venv are missing: run make setup" >&2; exit 1

# Checked once per build folder.
.build/checked-%:
	@mkdir -p .build
	@SWIFT=$(SWIFT) CLANG=$(CLANG) NODE=$(NODE) mk/check.sh $*
	@touch $@
