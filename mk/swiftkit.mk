# The package for Swift (bindings/swift).
#
#   test-swiftkit    its tests, against a local backend, on the core that the unit tests have compiled. TESTS="--filter
#                    Story" runs some of them
#   bench-swiftkit   what a call through it costs over the call in C; part of bench

.PHONY: test-swiftkit bench-swiftkit

test-swiftkit: | .build/checked-lib $(PYTHON)
	@$(PYTHON) bindings/swift/Tests/run.py $(SWIFT) .build-test $(TESTS)

bench-swiftkit: | .build/checked-lib
	@HOLDFAST_KIT=1 $(call release,calls,--scratch-path .build-runtime)
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	  .build-runtime/release/calls bench "$$folder" $(or $(CALLS),1000)
