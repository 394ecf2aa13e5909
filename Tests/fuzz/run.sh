#!/usr/bin/env bash
# run.sh replay          run the seeds and regressions unchanged: a part of `make test-all`
# run.sh MINUTES [SEED]  the same, then let libFuzzer mutate them for some minutes, from a random seed without SEED.
#                        The corpus stays in build/fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p build/fuzz/corpus build/fuzz/findings
folders=(Tests/fuzz/seeds Tests/fuzz/regressions)
scripts=(Tests/fuzz/seeds/* Tests/fuzz/regressions/*)
# Seconds for one script, of a machine under load; judge.c limits the processor's time of each call.
hang=120

survived=${#scripts[@]} status=0
build/fuzz/fuzz -seed=1 -timeout=$hang "${scripts[@]}" > build/fuzz/replayed.log 2>&1 || survived=0 status=1
[ $status = 0 ] || tail -60 build/fuzz/replayed.log
if [ "$1" = replay ] || [ $status != 0 ]; then
  echo "reliability: scripts of calls under ASan: ${#scripts[@]} tried, $survived survived"
  exit $status
fi

minutes=$1 seed=${2:-$((RANDOM * 32768 + RANDOM + 1))}
echo "fuzz: seed $seed (make fuzz SEED=$seed, from the same corpus)"
build/fuzz/fuzz build/fuzz/corpus "${folders[@]}" -dict=build/fuzz/holdfast.dict -max_total_time=$((minutes * 60)) \
  -seed="$seed" -max_len=8192 -timeout=$hang -rss_limit_mb=2048 -artifact_prefix=build/fuzz/findings/ -print_final_stats=1 \
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
