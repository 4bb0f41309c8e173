#!/usr/bin/env bash
# full_disk_test.sh PROGRAMS: one job whose checkpoints go to a tmpfs of 1 MiB,
# which somebody fills. Training goes on, log and status say what is wrong, the
# last checkpoint stays whole, and the next one is written when there is room.
# Needs mounts: exits with 77, which is "skipped", where they cannot be made.
set -euo pipefail
programs=$1

skip() {
  printf 'SKIPPED, NOTHING WAS PROVED: %s\n' "$*" >&2
  exit 77
}

# The mount is seen by this script and what it starts, and goes with them.
if [ "${2:-}" != mounted ]; then
  [ -d /usr/share/datasets/fashion-mnist ] ||
    skip "dataset-fashion-mnist is not installed"
  mode=(--mount)
  [ "$(id -u)" -eq 0 ] || mode=(--map-root-user --mount)
  unshare "${mode[@]}" mount -t tmpfs none /mnt 2>/dev/null ||
    skip "mounts cannot be made here"
  exec unshare "${mode[@]}" "$0" "$programs" mounted
fi

data=/usr/share/datasets/fashion-mnist
work=$(mktemp -d /tmp/lockstep-full-disk-test-XXXXXX)
volume=$work/volume
mkdir "$volume"
mount -t tmpfs -o size=1m none "$volume"
run=
finish() {
  [ -z "$run" ] || kill "$run" 2>/dev/null || true
  wait
  umount "$volume" && rm -rf "$work"
}
trap finish EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  tail -n 25 "$work"/logs/*.log "$work/run.log" >&2
  exit 1
}

# until_true WHAT COMMAND...: tries the command for two minutes.
until_true() {
  local what=$1 deadline=$((SECONDS + 120))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "waited in vain for: $what"
    kill -0 "$run" 2>/dev/null || fail "the run ended before: $what"
    sleep 0.1
  done
}

status() { "$programs/lockstep" status --log_dir "$work/logs" "$@" 2>/dev/null; }
# number FIELD: of the status, e.g. global_step.
number() { status --json | sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" | head -n 1; }
# told FIELD: sets `now` to it, of a chief that may be busy.
told() { now=$(number "$1") && [ -n "$now" ]; }
reached() { local now; now=$(number "$1") && [ "${now:-0}" -ge "$2" ]; }
in_trouble() {
  local told
  told=$(status --json) && [[ $told != *'"checkpoint_trouble": ""'* ]]
}
out_of_trouble() {
  local told
  told=$(status --json) && [[ $told == *'"checkpoint_trouble": ""'* ]]
}
# A checkpoint that is just being written makes room for the next one when it
# is complete, so the volume is filled until one has failed.
fill_until_trouble() {
  dd if=/dev/zero of="$volume/filler" bs=4k oflag=append conv=notrunc \
    2>/dev/null || true
  in_trouble
}

cat >"$work/cluster.json" <<'JSON'
{"cluster": {"chief": ["127.0.0.1:0"], "ps": ["127.0.0.1:0"],
             "worker": ["127.0.0.1:0", "127.0.0.1:0"]}}
JSON
cat >"$work/job.textproto" <<JOB
name: "full_disk"
train_steps: 10000000
batch_size: 32
learning_rate: 0.05
model { kind: "softmax" }
optimizer { kind: MOMENTUM }
data { train_images: "$data/train-images-idx3-ubyte.gz"
       train_labels: "$data/train-labels-idx1-ubyte.gz" }
checkpoint { directory: "$volume/checkpoints" every_steps: 100 keep: 2 }
JOB
"$programs/lockstep" run --cluster "$work/cluster.json" \
  --job "$work/job.textproto" --log_dir "$work/logs" >"$work/run.log" 2>&1 &
run=$!

until_true "a checkpoint" reached last_checkpoint_step 100
echo "-- the volume is full"
until_true "status to say so" fill_until_trouble
until_true "the last checkpoint" told last_checkpoint_step
last=$now
until_true "the step" told global_step
step=$now
says_no_space() { status >"$work/status" && grep -i "no space" "$work/status"; }
until_true "what is wrong, in the status" says_no_space
grep -m 1 "the one before stays" "$work/logs/chief-0.log" ||
  fail "the log does not say what is wrong"

echo "-- training goes on, and the last checkpoint stays"
until_true "more steps" reached global_step $((step + 300))
until_true "the last checkpoint" told last_checkpoint_step
[ "$now" = "$last" ] || fail "one was written"
[ -f "$volume/checkpoints/$(printf 'step-%08d' "$last")/manifest.json" ] ||
  fail "the checkpoint of step $last is gone"

echo "-- there is room again"
rm "$volume/filler"
until_true "the next checkpoint" reached last_checkpoint_step $((last + 1))
until_true "the end of the trouble" out_of_trouble
"$programs/lockstep" stop --log_dir "$work/logs" >/dev/null ||
  fail "it could not be stopped"
code=0
wait "$run" || code=$?
run=
[ "$code" -eq 3 ] || fail "the stopped run ended with $code"
echo "a full disk stopped no step"
