#!/usr/bin/env bash
# partition_test.sh PROGRAMS [tls]: one job on five hosts, each a network namespace;
# with tls, each task has a certificate.
# The network between two of them is cut, one way and both ways, for longer than
# a lease, and healed. The job ends with the bits of an undisturbed one.
# Needs root and iptables: exits with 77, which is "skipped", without them.
set -euo pipefail
secure=${2:-}
# shellcheck source=hosts_lib.sh
. "$(dirname "$0")/hosts_lib.sh" "$1" partition
hosts_firewall_or_skip
tasks=(chief-0 ps-0 ps-1 worker-0 worker-1)
steps=6000  # a fast machine makes thousands while a task is not heard
lease=1
declare -A pids

# Flags of a task.
security() { if [ "$secure" ]; then echo "--tls_dir $work/tls/$1"; else echo --insecure; fi; }

program_of() {
  case $1 in
    chief-*) echo "$programs/chief $(security "$1") --job $run/job.textproto" ;;
    ps-*) echo "$programs/ps_server $(security "$1") --shared_memory=off --state_dir $run/$1" ;;
    worker-*) echo "$programs/worker $(security "$1") --shared_memory=off --compute_threads 1" ;;
  esac
}

config() {
  "$programs/lockstep" config make --ps 2 --workers 2 \
    --host_pattern '{task}-{index}' "$@"
}

start_job() {
  run=$work/$1
  mkdir "$run"
  cat >"$run/job.textproto" <<JOB
name: "partition"
train_steps: $steps
batch_size: 32
learning_rate: 0.05
model { kind: "softmax" }
data { train_images: "$data/train-images-idx3-ubyte.gz"
       train_labels: "$data/train-labels-idx1-ubyte.gz" }
checkpoint { directory: "$run/checkpoints" every_steps: 400 }
heartbeat_interval { nanos: 200000000 }
lease { seconds: $lease }
JOB
  local name
  for name in "${tasks[@]}"; do
    # shellcheck disable=SC2046
    (on_host "$name" env TF_CONFIG="$(config --task "${name/-/:}")" \
      $(program_of "$name")) >"$run/$name.log" 2>&1 &
    pids[$name]=$!
  done
}

end_job() {
  local name code
  for name in "${tasks[@]}"; do
    code=0
    wait "${pids[$name]}" || code=$?
    [ "$code" = 0 ] || fail "$name ended with $code"
  done
}

step() {
  (on_host chief-0 "$programs/lockstep" status --chief "$address" --json "${operator[@]}") \
    2>/dev/null | sed -n 's/.*"global_step": *\([0-9]*\).*/\1/p' | head -n 1
}

# Waits until the job has made so many steps from where it is.
more_steps() {
  local from now deadline=$((SECONDS + 60))
  from=
  until now=$(step) && [ -n "$now" ] && [ "$now" -ge $((${from:=$now} + $1)) ]; do
    [ "$SECONDS" -lt "$deadline" ] || fail "no step after ${from:-all}"
    kill -0 "${pids[chief-0]}" 2>/dev/null || fail "the job ended too early"
    sleep 0.05
  done
}

# Waits until the chief has missed a task that it does not hear, but not for ever:
# the end of the test tells.
missed() {
  local i
  for ((i = 0; i < 100; ++i)); do
    grep -q "${1/-/ } is gone" "$run/chief-0.log" && break
    sleep 0.2
  done
}

cut_for_a_while() {
  printf -- '-- %s\n' "$1"
  shift
  local pair
  for pair in "$@"; do host_deafen "${pair%%:*}" "${pair##*:}"; done
  sleep "$lease.3"
  for pair in "$@"; do
    [ "${pair%%:*}" != chief-0 ] || missed "${pair##*:}"
  done
  for pair in "$@"; do host_hear "${pair%%:*}" "${pair##*:}"; done
  more_steps 20
}

hosts_make "${tasks[@]}"
address=$(config | grep -o 'chief-0:[0-9]*' | head -n 1)
operator=()
if [ "$secure" ]; then
  config >"$work/cluster.json"
  "$programs/lockstep" certs make --cluster "$work/cluster.json" --job partition \
    --out "$work/tls" >/dev/null
  operator=(--tls_dir "$work/tls/operator-read")
fi
start_job undisturbed
end_job
start_job cut
more_steps 20
cut_for_a_while "a ps that does not hear a worker, a worker that does not hear a ps" \
  ps-1:worker-0 worker-1:ps-0
cut_for_a_while "a worker and ps 0 without each other" ps-0:worker-1 worker-1:ps-0
cut_for_a_while "a ps that does not hear the chief" ps-0:chief-0
cut_for_a_while "a chief that does not hear a ps" chief-0:ps-1
cut_for_a_while "chief and ps without each other" chief-0:ps-1 ps-1:chief-0
cut_for_a_while "a chief that does not hear a worker" chief-0:worker-0
cut_for_a_while "chief and worker without each other" chief-0:worker-1 worker-1:chief-0
end_job

for file in model optimizer; do
  cmp "$work"/{undisturbed,cut}/checkpoints/step-*"$steps/$file.safetensors" ||
    fail "$file differs"
done
# Else nothing was cut.
for name in worker-0 worker-1 ps-1; do
  grep -q "${name/-/ } is gone" "$work/cut/chief-0.log" ||
    fail "the chief did not miss $name"
done
echo "the same bits"
