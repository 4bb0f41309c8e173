#!/usr/bin/env bash
# moved_host_test.sh PROGRAMS: one job on three hosts, each a network namespace
# with a name. The host of its ps loses power: its peers get neither FIN nor RST.
# The ps starts on a fourth host, and its name gets that host's address. The job
# goes on long before TCP itself would give up the connections (15 minutes).
# Needs root: exits with 77, which is "skipped", where namespaces cannot be made.
set -euo pipefail
programs=$1
here=$(dirname "$0")
# shellcheck source=namespaces.sh
. "$here/namespaces.sh"

hosts_or_skip
data=/usr/share/datasets/fashion-mnist
[ -d "$data" ] || hosts_skip "dataset-fashion-mnist is not installed"

work=$(mktemp -d /tmp/lockstep-moved-test-XXXXXX)
trap 'hosts_end; rm -rf "$work"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  tail -n 15 "$work"/*.log >&2
  exit 1
}

# until_true WHAT COMMAND...: tries the command for a minute and a half.
until_true() {
  local what=$1 deadline=$((SECONDS + 90))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "waited in vain for: $what"
    sleep 0.2
  done
}

config() {
  "$programs/lockstep" config make --ps 1 --workers 1 \
    --host_pattern '{task}-{index}' "$@"
}

# start NAME HOST PROGRAM FLAG...: starts a task on a host.
start() {
  local name=$1 host=$2 program=$3
  shift 3
  (on_host "$host" env TF_CONFIG="$(config --task "${name/-/:}")" \
    "$programs/$program" --insecure "$@") >"$work/$name-on-$host.log" 2>&1 &
  disown  # hosts_end kills it, which is not worth a message
}

step() {
  (on_host chief-0 "$programs/lockstep" status --chief "$address" --json) \
    2>/dev/null | sed -n 's/.*"global_step": *\([0-9]*\).*/\1/p' | head -n 1
}
has_step() { local now; now=$(step) && [ "${now:-0}" -ge "$1" ]; }
has_other_step() { local now; now=$(step) && [ "${now:-$1}" != "$1" ]; }

cat >"$work/job.textproto" <<JOB
name: "moved"
train_steps: 100000000
batch_size: 32
learning_rate: 0.05
model { kind: "softmax" }
data { train_images: "$data/train-images-idx3-ubyte.gz"
       train_labels: "$data/train-labels-idx1-ubyte.gz" }
checkpoint { directory: "$work/checkpoints" }
lease { seconds: 3 }
JOB

hosts_make chief-0 ps-0 worker-0 spare
address=$(config | grep -o 'chief-0:[0-9]*' | head -n 1)
start chief-0 chief-0 chief --job "$work/job.textproto"
start ps-0 ps-0 ps_server --shared_memory=off --state_dir "$work/first"
start worker-0 worker-0 worker --shared_memory=off --compute_threads 1
until_true "steps over three hosts" has_step 20

echo "-- the host of the ps loses power"
host_cut ps-0
sleep 1
stood=$(step) || fail "the chief has no status"

echo "-- and the ps comes back on another one"
since=$SECONDS
host_rename spare ps-0
start ps-0 spare ps_server --shared_memory=off --state_dir "$work/second"
# Its state is lost: the job has gone back, and goes on from there.
until_true "the ps at its new address" has_other_step "$stood"
until_true "more steps" has_step 20
echo "the job went on $((SECONDS - since)) s later"
