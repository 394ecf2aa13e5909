# What the library costs. See docs/benchmarks.md.
#
#   bench          the table of docs/benchmarks.md: a quarter of an hour; QUICK=1 tries it in two minutes
#   bench-check    instructions per call and sizes, against what is recorded; part of CI
#   bench-record   record them

.PHONY: bench bench-check bench-record

BENCH := $(PYTHON) -B Tests/benchmarks

bench: lib bundle | $(PYTHON)
	@$(BENCH)/bench.py

bench-check: lib bundle | $(PYTHON)
	@$(BENCH)/check.py

bench-record: lib bundle | $(PYTHON)
	@$(BENCH)/check.py record
