# The package for Swift (bindings/swift).
#
#   test-swiftkit    its tests, against a local backend, on the core that the unit tests have compiled. TESTS="--filter
#                    News" runs some of them

.PHONY: test-swiftkit

test-swiftkit: | .build/checked-lib $(PYTHON)
	@$(PYTHON) bindings/swift/Tests/run.py $(SWIFT) .build-test $(TESTS)
