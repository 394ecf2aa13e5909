# What building and testing need. One call of apt installs what is missing for a tier; every other target checks what it
# needs (mk/check.sh) and installs nothing.
#
#   setup-demo    of `make demo`
#   backend       needs PostgreSQL and four Python packages alone
#   setup         of `make test`
#   setup-tools   of `make lint`, and of what CI builds beyond `make test`: the bundled library, the wheel, the model.
#                 PARTS="node jvm languages desktop arm64 musl": and what these parts need
#   setup-all     of `make test-all`: all parts

APT_BACKEND := python3-venv postgresql
APT_DEMO := ca-certificates libsqlite3-dev libsodium-dev libjansson-dev binutils g++ pkg-config libcurl4-openssl-dev \
  $(APT_BACKEND)
APT_TEST := $(APT_DEMO) openssl locales
APT_TOOLS := $(APT_TEST) valgrind strace spin cmake dpkg-dev patch xz-utils tcl autoconf automake libtool
APT_node := node-typescript
APT_jvm := default-jdk-headless libgoogle-gson-java libjetbrains-annotations-java libokhttp-java junit5
APT_languages := default-jdk-headless libjna-java libgoogle-gson-java golang-go cargo librust-serde-json-dev
APT_desktop := libadwaita-1-dev libglib2.0-dev libsecret-1-dev gnome-keyring dbus adwaita-icon-theme librsvg2-common \
  python3-gi gir1.2-adw-1 libsecret-tools gir1.2-atspi-2.0 at-spi2-core xvfb xdotool x11-utils imagemagick \
  fonts-cantarell desktop-file-utils appstream
APT_arm64 := qemu-user
APT_musl := musl-tools
PARTS :=
EVERY_PART := node jvm languages desktop arm64 musl

.PHONY: setup-demo setup setup-tools setup-all lock

# $(call installed,PACKAGES,LISTS): Debian packages, and the Python packages of mk/requirements/LIST.lock in .venv.
define installed
@mk/install-packages.sh $(1)
@$(AGAIN) -s $(2:%=.venv/%)
endef

setup-demo:
	$(call installed,$(APT_DEMO),demo)

setup:
	$(call installed,$(APT_TEST),test)

setup-tools:
	$(call installed,$(APT_TOOLS) $(foreach part,$(PARTS),$(APT_$(part))),test tools)

setup-all:
	@$(AGAIN) setup-tools PARTS='$(EVERY_PART)'

# Only the targets above ask for these files; others ask for the interpreter, without a time of its own.
.venv/demo: mk/requirements/demo.lock
.venv/test: mk/requirements/test.lock .venv/demo
.venv/tools: mk/requirements/tools.lock .venv/test
.venv/demo .venv/test .venv/tools:
	@[ -x .venv/bin/python ] || python3 -m venv .venv
	@.venv/bin/python -m pip install -q --no-compile --disable-pip-version-check --require-hashes -r $<
	@touch $@

# After a change of a list in mk/requirements.
lock:
	@mk/lock-requirements.sh demo test tools

.venv/bin/python:
	@echo "the Python packages in .venv are missing: run make setup" >&2; exit 1

# Checked once per build folder.
.build/checked-%:
	@mkdir -p .build
	@SWIFT=$(SWIFT) CLANG=$(CLANG) NODE=$(NODE) mk/check.sh $*
	@touch $@
