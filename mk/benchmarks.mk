# What the library costs. See docs/benchmarks.md.
#
#   bench          the table of docs/benchmarks.md: a quarter of an hour. No figure fails it; QUICK=1, a part of test-all,
#                  tries it in two minutes
#   bench-check    instructions, system calls, wake-ups, syncs and sizes, against what is recorded; part of CI and test-all
#   bench-flat     instructions of each call with 20,000 queued items against 100; part of nightly
#   bench-record   record them

.PHONY: bench bench-check bench-flat bench-record

BENCH := $(PYTHON) -B Tests/benchmarks

bench: lib lib-runtime bundle node | $(PYTHON)
	@$(BENCH)/bench.py

bench-check: lib lib-runtime bundle | $(PYTHON)
	@$(BENCH)/check.py

bench-flat: lib bundle | $(PYTHON)
	@$(BENCH)/flat.py

bench-record: lib lib-runtime bundle | $(PYTHON)
	@$(BENCH)/check.py record
	@$(PYTHON) docs/figures.py --write
