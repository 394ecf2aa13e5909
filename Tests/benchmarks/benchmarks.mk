# What the library costs; included by the Makefile. See docs/benchmarks.md.
#
#   bench          the table of docs/benchmarks.md: a quarter of an hour; QUICK=1 tries it in two minutes
#   bench-check    instructions per call and sizes, against what is recorded; part of CI
#   bench-record   record them

.PHONY: bench bench-check bench-record

BENCH := $(PYTHON) -B Tests/benchmarks

bench: deps .build/deps-test.stamp lib bundle
	@$(BENCH)/bench.py

bench-check: deps .build/deps-test.stamp lib bundle
	@$(BENCH)/check.py

bench-record: deps .build/deps-test.stamp lib bundle
	@$(BENCH)/check.py record
