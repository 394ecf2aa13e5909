#!/usr/bin/env bash
# `run.sh MINUTES`: run the seeds and regressions unchanged, then let libFuzzer mutate them for some minutes.
# The corpus stays in build/fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/../.."
minutes=$1
mkdir -p build/fuzz/corpus build/fuzz/findings
scripts=(Tests/fuzz/seeds Tests/fuzz/regressions)

ASAN_OPTIONS=${ASAN_OPTIONS:-} build/fuzz/fuzz -timeout=20 Tests/fuzz/seeds/* Tests/fuzz/regressions/* \
  > build/fuzz/replayed.log 2>&1 || { tail -60 build/fuzz/replayed.log; exit 1; }

status=0
build/fuzz/fuzz build/fuzz/corpus "${scripts[@]}" -dict=build/fuzz/holdfast.dict -max_total_time=$((minutes * 60)) \
  -max_len=8192 -timeout=20 -rss_limit_mb=2048 -artifact_prefix=build/fuzz/findings/ -print_final_stats=1 \
  > build/fuzz/fuzz.log 2>&1 || status=$?
if [ $status != 0 ]; then
  tail -80 build/fuzz/fuzz.log
  for finding in $(sed -n 's/.*Test unit written to //p' build/fuzz/fuzz.log); do
    echo "-- $finding: shorten it with build/fuzz/fuzz -minimize_crash=1, keep it in Tests/fuzz/regressions"
    cat "$finding"
    echo
  done
fi
executed=$(sed -n 's/^stat::number_of_executed_units: *//p' build/fuzz/fuzz.log)
grep -E '^#[0-9]+\s+(INITED|DONE)' build/fuzz/fuzz.log | sed -E 's/^#([0-9]+)\s+(\w+)\s+(cov: [0-9]+ ft: [0-9]+ corp: [0-9]+).*/fuzz: \2 after \1 runs, \3/'
echo "reliability: fuzz: ${executed:-0} tried, $((${executed:-0} - (status != 0))) survived"
exit $status
