#!/usr/bin/env bash
# slurm_test.sh SOURCE_DIR BIN_DIR PYTHON_DIR: boots a Slurm cluster of two nodes on this
# machine, and submits deploy/slurm/lockstep.sbatch to it as its page says: a job
# trains with certificates, a killed worker comes back, SIGTERM to all tasks, as
# before the end of a time limit, has the job stopped with a checkpoint and queued
# again, and it goes on from there to its end. Needs root, mounts, munge and Slurm:
# exits with 77, which is "skipped", where one is missing.
set -euo pipefail
script_arguments=("$@")
here=$(dirname "$0")
# shellcheck source=tests/e2e/system/system_lib.sh
source "$here/system_lib.sh"
need_root
need_tools munged slurmctld slurmd sbatch scontrol ip
need_data
in_namespaces --mount --net --pid --fork --mount-proc  # all ends with this script
ip link set lo up
# Slurm resolves no name where there are only addresses of loopback.
ip address add 10.9.0.1/24 dev lo
ip address add 10.9.0.2/24 dev lo
source=$1 python=$3
PATH=$2:$PATH lockstep=$2/lockstep

work=$(mktemp -d /tmp/lockstep-slurm-XXXXXX)

# The daemons and steps of Slurm write into $work until they are gone. All processes
# that process 1 of a namespace sees are of this test.
finish() {
  if [ $$ -eq 1 ]; then
    kill -KILL -1 2>/dev/null || true
    until ! kill -0 -1 2>/dev/null; do sleep 0.1; done
  fi
  rm -rf "$work"
}
trap finish EXIT

fail() {
  printf 'FAILED: %s\n' "$*"
  tail -n 30 "$work"/*.log "$work"/*.out "$work"/fashion/logs/*.log 2>/dev/null
  exit 1
}

# Two nodes of one machine, by names that only this mount namespace has, without
# the state of an earlier run.
boot() {
  mount -t tmpfs tmpfs /dev/shm
  printf '127.0.0.1 localhost\n10.9.0.1 %s node1\n10.9.0.2 node2\n' "$(hostname)" \
    >"$work/hosts"
  mount --bind "$work/hosts" /etc/hosts
  head -c 1024 /dev/urandom >"$work/munge.key"
  chmod 0400 "$work/munge.key"
  chmod 0755 "$work"
  munged --force --key-file="$work/munge.key" --socket="$work/munge.socket" \
    --pid-file="$work/munge.pid" --seed-file="$work/munge.seed" \
    --log-file="$work/munge.log"
  export SLURM_CONF=$work/slurm.conf
  mkdir "$work/state"
  cat >"$SLURM_CONF" <<CONF
ClusterName=lockstep
SlurmctldHost=$(hostname)(10.9.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
KillWait=30
MessageTimeout=60
NodeName=node1 NodeHostname=$(hostname) NodeAddr=10.9.0.1 Port=7001 CPUs=8
NodeName=node2 NodeHostname=$(hostname) NodeAddr=10.9.0.2 Port=7002 CPUs=8
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
  slurmctld
  slurmd -N node1
  slurmd -N node2
  until_true "two idle nodes" nodes_are_idle
}

nodes_are_idle() { [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ]; }
state() { scontrol show job "$id" | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p'; }
restarts() { scontrol show job "$id" | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p'; }
has_state() { [ "$(state)" = "$1" ]; }
has_line() { grep -qE "$2" "$work/fashion/logs/$1.log" 2>/dev/null; }

submit() {
  mkdir "$work/fashion"
  sed -e 's/^name:.*/name: "fashion"/' -e 's/^batch_size:.*/batch_size: 50/' \
    -e 's/^train_steps:.*/train_steps: 1000000/' \
    "$source/deploy/examples/jobs/fashion_mnist/job.textproto" \
    >"$work/fashion/job.textproto"
  cat >>"$work/fashion/job.textproto" <<<"lease { seconds: 4 }"
  cd "$work"
  id=$(LOCKSTEP_WORKERS=3 LOCKSTEP_WORKER_FLAGS=--data_root=/usr/share/datasets \
    sbatch --parsable --nodes=2 --cpus-per-task=2 --output="$work/%j.out" \
    "$source/deploy/slurm/lockstep.sbatch" "$work/fashion")
}

# Training pauses until the stop, to leave the processors to the test.
trains() {
  until_true "a checkpoint" has_line chief-0 'checkpoint of step'
  operator=(--cluster "$work/fashion/cluster.json"
    --tls_dir "$work/fashion/certs/operator-steer")
  "$lockstep" pause "${operator[@]}"
  [ "$(pgrep -ax worker | grep -c -e '--data_root=.* --compute_threads=2')" = 3 ] ||
    fail "the workers' flags are: $(pgrep -ax worker)"
  # Workers are on both nodes, and all connections are encrypted.
  cat "$work/fashion/cluster.json"
  for node in 1 2; do
    grep -q "\"worker\":.*\"node$node:" "$work/fashion/cluster.json" ||
      fail "no worker is on node$node"
  done
  ! "$lockstep" status --cluster "$work/fashion/cluster.json" >"$work/plain.log" 2>&1 ||
    fail "a stranger may see the job"
  "$lockstep" status "${operator[@]}" || [ $? -eq 4 ]  # a paused job's
}

worker_comes_back() {
  pkill -KILL -f 'libexec|/worker .*worker-1' || fail "worker 1 does not run"
  until_true "a new start" grep -q 'worker 1 has ended with code 137' "$work/$id.out"
  until_true "worker 1 is back" registered_twice
}
registered_twice() {
  [ "$(grep -c 'registered with the chief' "$work/fashion/logs/worker-1.log")" -ge 2 ]
}

goes_on_after_a_stop() {
  "$lockstep" resume "${operator[@]}"
  # To the steps, as --signal=TERM@120 sends it. A busy slurmctld may not answer.
  until_true "the stop" scancel --signal=TERM "$id"
  until_true "queued again" queued_again
  local stopped
  stopped=$(sed -n '/stopped: /q; s/.*checkpoint of step \([0-9]*\) .*/\1/p' \
    "$work/fashion/logs/chief-0.log" | tail -n 1)
  sed -i "s/^train_steps:.*/train_steps: $((${stopped:?} + 300))/" \
    "$work/fashion/job.textproto"
  # Not in the second of the stop.
  until_true "another start" scontrol update "JobId=$id" StartTime=now+3
  until_true "running again" has_begun_again
  until_true "the end" has_state COMPLETED
  has_line chief-0 "resumed from the checkpoint of step $stopped " ||
    fail "it did not go on from step $stopped"
  has_line chief-0 "done at step $((stopped + 300))" || fail "not done"
  echo "stopped at step $stopped"
}
has_begun_again() { [[ $(state) =~ RUNNING|COMPLETED ]]; }
queued_again() { [ "$(restarts)" = 1 ]; }

own_program() {
  mkdir "$work/own"
  cat >"$work/own/job.textproto" <<'JOB'
name: 'own'
model { kind: "external" }
train_steps: 50
batch_size: 8
learning_rate: 0.1
JOB
  cat >"$work/own/train.py" <<'PROGRAM'
import lockstep
import numpy as np

worker = lockstep.Worker({"w": np.zeros(4, np.float32)})
for step in worker.steps():
    step.push({"w": step.values["w"] - 1})
PROGRAM
  # Tasks find what the script finds, its certificates included.
  id=$(PYTHONPATH=$python sbatch --parsable --nodes=2 --output="$work/%j.out" \
    --export=PATH,PYTHONPATH "$source/deploy/slurm/lockstep.sbatch" "$work/own" \
    -- /usr/bin/python3 "$work/own/train.py")
  until_true "the end" is_over
  cat "$work/$id.out"
  has_state COMPLETED || fail "$(tail -n 5 "$work"/own/logs/*)"
  grep -q 'done at step 50' "$work/own/logs/chief-0.log" || fail "not done"
}
is_over() { [[ $(state) =~ COMPLETED|FAILED|CANCELLED ]]; }

mirrors() {
  mkdir "$work/mirrored"
  sed -e 's/^name:.*/name: "mirrored"/' -e 's/^train_steps:.*/train_steps: 100/' \
    -e '/^mode:/d; /^replicas_to_aggregate:/d; /^total_num_replicas:/d' \
    "$source/deploy/examples/jobs/fashion_mnist/job.textproto" \
    >"$work/mirrored/job.textproto"
  echo 'strategy { kind: MULTI_WORKER_MIRRORED }' >>"$work/mirrored/job.textproto"
  sed -i 's|checkpoints/fashion_mnist|checkpoints/mirrored|' \
    "$work/mirrored/job.textproto"
  id=$(LOCKSTEP_SERVERS=0 sbatch --parsable --nodes=2 --output="$work/%j.out" \
    "$source/deploy/slurm/lockstep.sbatch" "$work/mirrored")
  until_true "the end" is_over
  cat "$work/$id.out"
  has_state COMPLETED || fail "$(tail -n 5 "$work"/mirrored/logs/*)"
  grep -q 'done at step 100' "$work/mirrored/logs/worker-0.log" || fail "not done"
}

failing_program() {
  echo 'raise ValueError("no data")' >"$work/own/bad.py"
  id=$(sbatch --parsable --nodes=2 --output="$work/%j.out" \
    "$source/deploy/slurm/lockstep.sbatch" "$work/own" -- \
    /usr/bin/python3 "$work/own/bad.py")
  until_true "the end" is_over
  cat "$work/$id.out"
  has_state FAILED || fail "state $(state)"
  grep -q 'worker . has failed with code 1: ValueError: no data' \
    "$work/$id.out" || fail "no reason"
}

# A backup that has failed for good is no reason to end the job with its time limit.
goes_on_without_a_backup() {
  mkdir "$work/spare"
  sed -e 's/^name:.*/name: "spare"/' -e 's/^train_steps:.*/train_steps: 1000000/' \
    "$work/own/job.textproto" >"$work/spare/job.textproto"
  echo 'replicas_to_aggregate: 2 total_num_replicas: 3' >>"$work/spare/job.textproto"
  cat >"$work/spare/train.py" <<'PROGRAM'
import json
import os
import sys

import lockstep
import numpy as np

if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 2:
    sys.exit("no data")
worker = lockstep.Worker({"w": np.zeros(4, np.float32)})
for step in worker.steps():
    step.push({"w": step.values["w"] - 1})
    print("pushed", flush=True)
PROGRAM
  id=$(PYTHONPATH=$python LOCKSTEP_WORKERS=3 LOCKSTEP_BACKUPS=1 sbatch --parsable \
    --nodes=2 --output="$work/%j.out" "$source/deploy/slurm/lockstep.sbatch" \
    "$work/spare" -- /usr/bin/python3 "$work/spare/train.py")
  until_true "the backup fails" grep -q 'worker 2 has failed with code 1' \
    "$work/$id.out"
  until_true "the job trains" grep -qs pushed "$work/spare/logs/worker-0.log"
  until_true "the stop" scancel --signal=TERM "$id"
  until_true "queued again" queued_again
  until_true "its end" scancel "$id"
}

# A program's own handler of SIGTERM leaves with 1, which is no failure of the job.
stops_a_program_with_a_handler() {
  mkdir "$work/handler"
  sed -e 's/^name:.*/name: "handler"/' -e 's/^train_steps:.*/train_steps: 1000000/' \
    "$work/own/job.textproto" >"$work/handler/job.textproto"
  echo "checkpoint { directory: '$work/handler/checkpoints' }" \
    >>"$work/handler/job.textproto"
  {
    printf 'import signal\nimport sys\n'
    echo 'signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))'
    cat "$work/own/train.py"
    echo '    print("pushed", flush=True)'
  } >"$work/handler/train.py"
  id=$(PYTHONPATH=$python sbatch --parsable --nodes=2 --output="$work/%j.out" \
    "$source/deploy/slurm/lockstep.sbatch" "$work/handler" -- \
    /usr/bin/python3 "$work/handler/train.py")
  until_true "the job trains" grep -qs pushed "$work/handler/logs/worker-0.log"
  until_true "the stop" scancel --signal=TERM "$id"
  until_true "queued again" queued_again
  cat "$work/$id.out"
  grep -q 'Exited with exit code 1$' "$work/$id.out" || fail "no program left with 1"
  grep -q 'checkpoint of step' "$work/handler/logs/chief-0.log" ||
    fail "no checkpoint"
  until_true "its end" scancel "$id"
}

# Two workers fail, one after the other, while the chief takes long to stop: each
# task gets one SIGTERM, as a second one would cut off the chief's checkpoint.
signals_once() {
  mkdir "$work/once"
  sed 's/^name:.*/name: "once"/' "$work/own/job.textproto" \
    >"$work/once/job.textproto"
  cat >"$work/once/train.py" <<'PROGRAM'
import json
import os
import pathlib
import signal
import sys
import time

index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
signal.signal(signal.SIGTERM, lambda *_: print("SIGTERM", flush=True))
print("runs", flush=True)
while not pathlib.Path(sys.argv[1], "end" if index == 0 else "fail").exists():
    time.sleep(0.1)
time.sleep(2 * index)
sys.exit(min(index, 1))
PROGRAM
  id=$(LOCKSTEP_WORKERS=3 sbatch --parsable --nodes=2 --output="$work/%j.out" \
    "$source/deploy/slurm/lockstep.sbatch" "$work/once" -- \
    /usr/bin/python3 "$work/once/train.py" "$work/once")
  until_true "three workers" three_run
  until_true "a chief" pkill -STOP -x chief
  touch "$work/once/fail"
  until_true "SIGTERM" grep -q SIGTERM "$work/once/logs/worker-0.log"
  sleep 10
  touch "$work/once/end"
  pkill -CONT -x chief
  until_true "the end" is_over
  cat "$work/$id.out"
  has_state FAILED || fail "state $(state)"
  [ "$(grep -c SIGTERM "$work/once/logs/worker-0.log")" = 1 ] ||
    fail "$(cat "$work/once/logs/worker-0.log")"
}
three_run() { [ "$(cat "$work"/once/logs/worker-?.log 2>/dev/null | grep -c runs)" = 3 ]; }

# refused NAME: a job in a directory that has another name.
refused() {
  mkdir "$work/$1"
  cp "$work/own/job.textproto" "$work/$1"
  id=$(sbatch --parsable --nodes=1 --output="$work/%j.out" \
    "$source/deploy/slurm/lockstep.sbatch" "$work/$1")
  until_true "the end" is_over
  has_state FAILED || fail "state $(state)"
  grep -q "must have an unindented line name: \"$1\"" "$work/$id.out" || fail "no reason"
}

phase "two nodes boot" boot
phase "a job is submitted" submit
phase "it trains" trains
phase "a killed worker comes back" worker_comes_back
phase "stopped, queued again, and done" goes_on_after_a_stop
phase "a program of one's own trains" own_program
phase "copies of the variables on two nodes" mirrors
phase "one that fails ends the job" failing_program
phase "one goes on without a backup, and is queued again" goes_on_without_a_backup
phase "a program's own handler is no failure" stops_a_program_with_a_handler
phase "each task gets one SIGTERM" signals_once
phase "a job of another name is refused" refused other
phase "a directory's name is no pattern" refused o.n
phases
