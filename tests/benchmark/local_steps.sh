#!/usr/bin/env bash
# local_steps.sh BUILD_DIR [RATE] [BATCHES] [H...]: bible_gpt over a slow network,
# with an exchange after each batch (H = 1) and after H local steps, with equally
# many batches. Each task is a host, a network namespace, that sends at most RATE
# (100mbit). Prints a table: the loss per byte of the test text, the bytes that all
# hosts sent, and the time. Needs root, and the job's text (deploy/examples/jobs).
#
# Environment:
#   SETTINGS        of all jobs, e.g. "batch_size=2"
#   OUTER           of those with local steps; default: the mean of the values
#   LOCKSTEP_BIBLE  the folder with train.txt and test.txt; default ./bible
set -euo pipefail
build=$(realpath "$1")
rate=${2:-100mbit}
batches=${3:-320}
shift $(($# < 3 ? $# : 3))
steps=("${@:-16}")
root=$(realpath "$(dirname "$0")/../..")
job=$root/deploy/examples/jobs/bible_gpt
export hosts_tag=lst$$
# shellcheck source=../e2e/namespaces.sh
. "$root/tests/e2e/namespaces.sh"
hosts_or_skip
work=$(mktemp -d /tmp/lockstep-local-steps-XXXXXX)
tasks=(chief-0 ps-0 worker-0 worker-1)
finish() {
  hosts_end 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

config() {
  "$build/bin/lockstep" config make --ps 1 --workers 2 \
    --host_pattern '{task}-{index}' --task "$1"
}

# Bytes that a host has sent.
sent() { ip -n "$hosts_tag-$1" -s -j link show dev eth0 | python3 -c \
  'import json, sys; print(json.load(sys.stdin)[0]["stats64"]["tx"]["bytes"])'; }

# train NAME SETTING...: prints seconds, bytes and loss.
train() {
  local name=$1 set=() setting began ended total=0 task program
  shift
  for setting in "$@"; do set+=(--set "$setting"); done
  hosts_make "${tasks[@]}"
  for task in "${tasks[@]}"; do host_slow "$task" "$rate"; done
  began=$EPOCHREALTIME
  for task in ps-0 worker-0 worker-1 chief-0; do
    program="$build/bin/worker --insecure --shared_memory=off --compute_threads 1"
    [ "$task" != ps-0 ] || program="$build/bin/ps_server --insecure --shared_memory=off --state_dir $work/$name-state"
    [ "$task" != chief-0 ] || program="$build/bin/chief --insecure --job $job/job.textproto --set checkpoint.directory=$work/$name --set checkpoint.every_steps=100000 ${set[*]}"
    mkdir -p "$work/$name-state"
    chmod 700 "$work/$name-state"
    # shellcheck disable=SC2086
    (cd "$work" && on_host "$task" env TF_CONFIG="$(config "${task/-/:}")" \
      $program) >"$work/$name.$task.log" 2>&1 &
  done
  wait $! || { tail -n 5 "$work/$name".*.log >&2; exit 1; }
  ended=$EPOCHREALTIME
  for task in "${tasks[@]}"; do total=$((total + $(sent "$task"))); done
  wait
  hosts_end
  loss=$(cd "$work" && "$build/bin/lockstep" evaluate --job "$job/job.textproto" \
    --checkpoints "$work/$name" 2>"$work/$name.evaluate.log" |
    grep -oE 'loss [0-9.]+' | head -n 1 | cut -d' ' -f2)
  python3 -c "print(f'{$ended - $began:.1f} {$total} ${loss:-nan}')"
}

ln -s "${LOCKSTEP_BIBLE:-$root/bible}" "$work/bible"
[ -s "$work/bible/train.txt" ] || hosts_skip "no $root/bible/train.txt: run the job once, or set LOCKSTEP_BIBLE"
warm=$((batches / 10))
# shellcheck disable=SC2086  # settings are words
read -r seconds1 bytes1 loss1 < <(train one ${SETTINGS:-} train_steps="$batches" \
  learning_rate_schedule.warmup_steps=$warm)
printf '%-4s %9s %10s %14s %9s %9s %9s\n' H steps seconds 'MB sent' loss \
  'bytes/1' 'times/1'
printf '%-4s %9s %10s %14s %9s %9s %9s\n' 1 "$batches" "$seconds1" \
  $((bytes1 / 1000000)) "$loss1" 1 1
for h in "${steps[@]}"; do
  # shellcheck disable=SC2086
  read -r seconds bytes loss < <(train "h$h" ${SETTINGS:-} train_steps=$((batches / h)) \
    local_steps="$h" local.optimizer.kind=ADAM local.optimizer.beta2=0.99 \
    local.learning_rate=0.002 \
    local.learning_rate_schedule.kind=COSINE_DECAY \
    local.learning_rate_schedule.warmup_steps=$warm \
    learning_rate_schedule.kind=CONSTANT \
    learning_rate_schedule.warmup_steps=0 \
    ${OUTER:-optimizer.kind=SGD optimizer.momentum=0 learning_rate=1})
  python3 -c "print('%-4s %9d %10s %14d %9s %9.3f %9.3f' % ($h, $batches // $h,
    '$seconds', $bytes / 1e6, '$loss', $bytes / $bytes1, $seconds / $seconds1))"
done
