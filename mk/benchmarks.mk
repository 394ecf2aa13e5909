# What the library costs. See docs/benchmarks.md.
#
#   bench          the table of docs/benchmarks.md: a quarter of an hour. No figure fails it
#   bench-short    its test, which runs every benchmark shortly, in two minutes (QUICK=1); part of test-all
#   bench-check    instructions, system calls, wake-ups, syncs and sizes, against what is recorded; part of CI and test-all
#   bench-flat     instructions of each call with 20,000 queued items against 100; part of nightly
#   bench-record   record them

.PHONY: bench bench-short bench-check bench-flat bench-record

BENCH := $(PYTHON) -B Tests/benchmarks

bench: lib lib-runtime bundle node | $(PYTHON)
	@$(BENCH)/bench.py

bench-short: lib lib-runtime bundle node | $(PYTHON)
	@$(PYTEST) Tests/benchmarks

bench-check: lib lib-runtime bundle | $(PYTHON)
	@$(BENCH)/check.py

bench-flat: lib bundle | $(PYTHON)
	@$(BENCH)/flat.py

bench-record: lib lib-runtime bundle | $(PYTHON)
	@$(BENCH)/check.py record
	@$(PYTHON) docs/figures.py --write
