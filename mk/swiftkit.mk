# The package for Swift (bindings/swift).

.PHONY: test-swiftkit

# Against a local backend. It compiles the core from Sources, as an app that depends on the package does.
test-swiftkit: | $(PYTHON)
	@$(PYTHON) bindings/swift/Tests/run.py $(SWIFT) .build-swiftkit $(TESTS)
