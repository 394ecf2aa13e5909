# The package for Swift (bindings/swift).
#
#   test-swiftkit    its tests, against a local backend. It compiles the core from Sources, as an app that depends on the
#                    package does: two minutes at the first time. TESTS="--filter Story" runs some of them
#   bench-swiftkit   what a call through it costs over the call in C; part of bench

.PHONY: test-swiftkit bench-swiftkit

test-swiftkit: | .build/checked-lib $(PYTHON)
	@$(PYTHON) bindings/swift/Tests/run.py $(SWIFT) .build-swiftkit $(TESTS)

SWIFTKIT_RELEASE := -q -c release --package-path bindings/swift --scratch-path .build-swiftkit

bench-swiftkit: | .build/checked-lib
	@$(SWIFT) build $(SWIFTKIT_RELEASE) --product calls
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	  "$$($(SWIFT) build $(SWIFTKIT_RELEASE) --show-bin-path)/calls" bench "$$folder" $(or $(CALLS),1000)
