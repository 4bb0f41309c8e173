#!/usr/bin/env bash
# hosts_test.sh PROGRAMS: one job on six hosts, each a network namespace with a
# name. One host becomes slow, another is cut off, taken for dead, and comes
# back; then an operator stops the job. Needs root: exits with 77, which is
# "skipped", where namespaces cannot be made.
set -euo pipefail
# shellcheck source=hosts_lib.sh
. "$(dirname "$0")/hosts_lib.sh" "$1" hosts
tasks=(chief-0 ps-0 ps-1 worker-0 worker-1 worker-2)
declare -A pids

program_of() {
  case $1 in
    chief-*) echo "$programs/chief --insecure --job $work/job.textproto" ;;
    ps-*) echo "$programs/ps_server --insecure --shared_memory=off --state_dir $work/$1" ;;
    worker-*) echo "$programs/worker --insecure --shared_memory=off --compute_threads 1" ;;
  esac
}

start() {
  local name=$1
  # shellcheck disable=SC2046
  (on_host "$name" env TF_CONFIG="$("$programs/lockstep" config make --ps 2 \
    --workers 3 --host_pattern '{task}-{index}' --task "${name/-/:}")" \
    $(program_of "$name")) >"$work/$name.log" 2>&1 &
  pids[$name]=$!
}

worker_is_back() { [ "$(grep -c "worker 1 registered" "$work/chief-0.log")" -ge 2 ]; }
says() { grep -q "$2" "$work/$1.log"; }

cat >"$work/job.textproto" <<JOB
name: "hosts"
replicas_to_aggregate: 2
train_steps: 1000000
batch_size: 32
learning_rate: 0.05
model { kind: "softmax" }
data { train_images: "$data/train-images-idx3-ubyte.gz"
       train_labels: "$data/train-labels-idx1-ubyte.gz" }
checkpoint { directory: "$work/checkpoints" }
lease { seconds: 3 }
JOB

hosts_make "${tasks[@]}"
address=$("$programs/lockstep" config make --ps 2 --workers 3 \
  --host_pattern '{task}-{index}' | grep -o 'chief-0:[0-9]*' | head -n 1)
for name in "${tasks[@]}"; do start "$name"; done
until_true "steps over six hosts" has_step 20

more_steps() {
  local before
  before=$(step_now)
  until_true "more steps" has_step $((before + 50))
}

# Steps that wait for the slow host, 100 kbit/s, take 2.5 s each: its gradients
# are 31 kB. So many take twice as long as until_true waits.
steps=100

echo "-- a slow host delays nobody"
host_slow worker-2 100kbit
before=$(step_now)
until_true "$steps steps beside a slow host" has_step $((before + steps))

echo "-- a host that is cut off is missed only by name"
host_fast worker-2
host_cut worker-1
until_true "its death" says chief-0 "worker 1 is gone"
more_steps

echo "-- and joins again when it is back"
host_mend worker-1
until_true "its return" says worker-1 "joining again"

until_true "its word to the chief" worker_is_back
more_steps

echo "-- and all of them stop when they are told to"
(on_host worker-0 "$programs/lockstep" stop --chief "$address")
for name in "${tasks[@]}"; do
  code=0
  wait "${pids[$name]}" || code=$?
  [ "$code" = 3 ] || fail "$name ended with $code, not with 3"
done
grep "stopped: lockstep stop" "$work/chief-0.log" || fail "it was not stopped"
echo "six hosts trained together"
