#!/usr/bin/env bash
# moved_host_test.sh PROGRAMS: one job on three hosts, each a network namespace
# with a name. The host of its ps loses power: its peers get neither FIN nor RST.
# The ps starts on a fourth host, and its name gets that host's address. The job
# goes on long before TCP itself would give up the connections (15 minutes).
# Needs root: exits with 77, which is "skipped", where namespaces cannot be made.
set -euo pipefail
# shellcheck source=hosts_lib.sh
. "$(dirname "$0")/hosts_lib.sh" "$1" moved-host

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
stood=$(step_now)

echo "-- and the ps comes back on another one"
since=$SECONDS
host_rename spare ps-0
start ps-0 spare ps_server --shared_memory=off --state_dir "$work/second"
# Its state is lost: the job has gone back, and goes on from there.
until_true "the ps at its new address" has_other_step "$stood"
until_true "more steps" has_step 20
echo "the job went on $((SECONDS - since)) s later"
