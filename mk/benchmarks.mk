# What the library costs. See docs/benchmarks.md.
#
#   bench          the table of docs/benchmarks.md: a quarter of an hour. No figure fails it; QUICK=1, a part of test-all,
#                  tries it in two minutes
#   bench-check    instructions, system calls, wake-ups, syncs and sizes, against what is recorded; part of CI and test-all
#   bench-flat     instructions of each call with 20,000 queued items against 100; part of nightly
#   bench-record   record them
#   bench-variants record the instructions per call of the bundled library, musl and arm64

.PHONY: bench bench-check bench-flat bench-record bench-variants

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

# ---- variants ----

HOST_SOURCES := $(addprefix Tests/benchmarks/,host.c bench.c)
BENCH_HOST_FLAGS := -std=gnu11 -O2 -Wall -Wextra -Werror -Iinclude -pthread

build/bench/count.so: Tests/benchmarks/count.c
	@mkdir -p $(@D)
	@$(CLANG) -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o $@ $<

build/bench-arm64/host: $(HOST_SOURCES) Tests/benchmarks/bench.h build/lib-arm64/libholdfast.so
	@mkdir -p $(@D)
	@$(ARM64)/cc $(BENCH_HOST_FLAGS) -o $@ $(HOST_SOURCES) -Lbuild/lib-arm64 -lholdfast -ljansson

build/bench-musl/host: $(HOST_SOURCES) Tests/benchmarks/bench.h build/lib-musl/libholdfast.so
	@mkdir -p $(@D)
	@musl-gcc $(BENCH_HOST_FLAGS) -I$(MUSL)/bundle/include -o $@ $(HOST_SOURCES) -Lbuild/lib-musl -lholdfast $(MUSL)/bundle/lib/libjansson.a

bench-variants: build/lib/libholdfast.so build/lib-bundled/libholdfast.so build/lib-arm64-bundled/libholdfast.so \
    $(addprefix build/,bench/count.so bench-arm64/host bench-musl/host) | $(PYTHON)
	@$(BENCH)/variants.py
	@$(PYTHON) docs/figures.py --write
