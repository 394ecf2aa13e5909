#!/usr/bin/env bash
# Runs the tests of the C API and the stress test on instrumented libraries.
#
# run.sh asan ROUNDS    all of Tests/abi and the stress on both flavours, under AddressSanitizer and UBSan
# run.sh tsan ROUNDS    the same under ThreadSanitizer
# run.sh stress asan|tsan embedded|runtime ROUNDS    only the stress
# run.sh api asan|tsan PYTEST...                     only some tests of the C API
# run.sh share ROUNDS   the stress under both, and the thread tests under ThreadSanitizer: without a search
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/Tests/sanitizers
# The clang of the Swift toolchain, also where the system has another one.
clang=$(PATH=$(dirname "$(command -v swift)"):$PATH command -v clang)
runtimes=$(dirname "$("$clang" -print-file-name=libclang_rt.asan-x86_64.so)")
swift=$(dirname "$clang")/../lib/swift/linux
symbolizer=$(dirname "$clang")/llvm-symbolizer

# No leak detection under Python, which never frees all of its memory: the stress, the fuzzer and valgrind
# detect leaks. The quarantine is small because many processes run side by side.
export ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16:malloc_context_size=8:external_symbolizer_path=$symbolizer
export UBSAN_OPTIONS=print_stacktrace=1:external_symbolizer_path=$symbolizer
export TSAN_OPTIONS=halt_on_error=0:exitcode=66:external_symbolizer_path=$symbolizer
# Instrumented code is slow. What is about time itself says nothing here.
HOLDFAST_PATIENCE=$((8 * ${HOLDFAST_PATIENCE:-1}))
export HOLDFAST_PATIENCE PYTEST_TIMEOUT=$((300 * HOLDFAST_PATIENCE))

# stress SANITIZER FLAVOUR ROUNDS
stress() {
  local folder build=build/$1/lib
  [ "$2" = embedded ] || build=build/$1/lib-$2
  folder=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/holdfast-stress.XXXXXX")
  trap 'rm -rf "$folder"' RETURN
  local survived=$3
  ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=1 LD_LIBRARY_PATH=$build "build/$1/stress" "$folder" "$3" || survived=0
  echo "reliability: rounds of threads under $1 ($2): $3 tried, $survived survived"
  [ "$survived" = "$3" ]
}

# api SANITIZER TESTS...
api() {
  local runtime=$runtimes/libclang_rt.$1-x86_64.so log=build/$1/reports
  # Swift's ThreadSanitizer runtime needs libdispatch.
  [ "$1" = asan ] || runtime+=" $swift/libdispatch.so $swift/libBlocksRuntime.so"
  rm -rf "$log" && mkdir -p "$log"
  local status=0
  ASAN_OPTIONS=$ASAN_OPTIONS:log_path=$PWD/$log/asan TSAN_OPTIONS=$TSAN_OPTIONS:log_path=$PWD/$log/tsan \
    UBSAN_OPTIONS=$UBSAN_OPTIONS HOLDFAST_SANITIZER=$1 HOLDFAST_SANITIZER_RUNTIME="$runtime" LD_PRELOAD="$runtime" \
    PYTHONPATH=$here .venv/bin/python -m pytest -p preload -q -p no:cacheprovider -n 2 -m 'not realtime' "${@:2}" | tee "$log.out" || status=$?
  local passed failed errors
  count() { tail -n 1 "$log.out" | grep -oE "[0-9]+ $1" | grep -oE '[0-9]+' || echo 0; }
  # pytest counts a failed fixture as an error: a test that leaves handles or replies.
  passed=$(count passed) failed=$(count failed) errors=$(count error)
  # Count every report, also of children that were killed or whose exit status no test checks.
  local reports; reports=$(find "$log" -type f | wc -l)
  if [ "$reports" != 0 ]; then
    head -c 20000 "$log"/*
    echo "$reports reports in $log"
    status=1
  fi
  # The test of a report is unknown: subtract it from the passed ones.
  local survived=$((passed - errors - reports))
  echo "reliability: tests of the C API under $1: $((passed + failed)) tried, $((survived > 0 ? survived : 0)) survived"
  return $status
}

# These tests check the size and the linked libraries of the shipped builds; instrumented builds differ: they
# take the sanitizer's functions from the host process.
shipped_only=(--deselect=Tests/abi/test_exports.py::test_ABI_4_a_c_program_links_every_function
  --deselect=Tests/abi/test_exports.py::test_ABI_4_no_swift_runtime_beside_the_library
  --deselect=Tests/abi/test_exports.py::test_ABI_4_the_soname_carries_the_number_of_the_abi
  --deselect=Tests/abi/test_exports.py::test_ABI_4_the_embedded_library_is_small
  --deselect=Tests/abi/test_build_info.py::test_the_number_of_the_abi_is_that_of_the_soname)

mode=$1 rounds=$2
case $mode in
  stress)
    stress "${@:2}"
    ;;
  api)
    api "$2" "${shipped_only[@]}" "${@:3}"
    ;;
  asan | tsan)
    stress "$mode" embedded "$rounds"
    stress "$mode" runtime "$rounds"
    HOLDFAST_FLAVOURS=all api "$mode" Tests/abi "${shipped_only[@]}"
    ;;
  share)
    stress tsan embedded "$rounds"
    stress asan embedded "$rounds"
    HOLDFAST_FLAVOUR=embedded api tsan Tests/abi/test_boundary.py Tests/abi/test_loop.py \
      -k "not unknown_fields and not invalid_json"
    ;;
esac
