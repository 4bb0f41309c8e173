#!/usr/bin/env bash
# explain_network_test.sh PROGRAMS: a job on five hosts, each a network namespace,
# of which one sends slowly, and hears the others as fast as ever. `lockstep
# explain` alone names that worker's network.
# Needs root, ip and tc: exits with 77, which is "skipped", without them.
set -euo pipefail
# shellcheck source=hosts_lib.sh
. "$(dirname "$0")/hosts_lib.sh" "$1" explain-network
tasks=(chief-0 ps-0 worker-0 worker-1 worker-2)

config() {
  "$programs/lockstep" config make --ps 1 --workers 3 \
    --host_pattern '{task}-{index}' "$@"
}

cat >"$work/job.textproto" <<JOB
name: "slow_way"
train_steps: 1000000
batch_size: 32
learning_rate: 0.01
model { kind: "softmax" }
data { train_images: "$data/train-images-idx3-ubyte.gz"
       train_labels: "$data/train-labels-idx1-ubyte.gz" }
JOB

hosts_make "${tasks[@]}"
host_slow worker-1 4mbit
for name in "${tasks[@]}"; do
  case $name in
    chief-*) program="chief --insecure --job $work/job.textproto" ;;
    ps-*) program="ps_server --insecure --shared_memory=off --state_dir $work/$name" ;;
    worker-*) program="worker --insecure --shared_memory=off --compute_threads 1" ;;
  esac
  # shellcheck disable=SC2086
  (on_host "$name" env TF_CONFIG="$(config --task "${name/-/:}")" \
    "$programs"/$program) >"$work/$name.log" 2>&1 &
done
address=$(config --task chief:0 |
  sed -n 's/.*"chief": *\[ *"\([^"]*\)".*/\1/p')
[ -n "$address" ] || address=$(config --task chief:0 | tr -d ' \n' |
  sed 's/.*"chief":\["\([^"]*\)".*/\1/')

explain() {
  (on_host chief-0 "$programs/lockstep" explain --chief "$address" --timeout 20 "$@")
}

# What else this machine does may be more trouble for some steps, but not for
# all.
advises() {
  explain --json --steps 30 >"$work/explanation" 2>/dev/null &&
    python3 - "$work/explanation" <<'PY'
import json, sys
it = json.load(open(sys.argv[1]))
if it["last_step"] < 40:
    sys.exit(1)
best = it["advice"][0]
parts = it["median"]["parts"]
if (best["remedy"], best.get("worker")) != ("worker_network", 1) or \
        parts["sending"] < 0.5 * it["median"]["seconds"]:
    print(json.dumps(it, indent=1), file=sys.stderr)
    sys.exit(1)
PY
}

deadline=$((SECONDS + 120))
until advises 2>"$work/advice"; do
  [ "$SECONDS" -lt "$deadline" ] ||
    fail "no 40 steps, or other advice: $(cat "$work/advice")"
  sleep 0.5
done
explain --steps 30
