#!/usr/bin/env bash
# certs_readme_test.sh PAGE BIN_DIR: runs the commands of the page's section
# "Securing a job" as they stand there, for a job on this machine. Only the
# directory on the servers' hosts is another, and scp copies on this machine.
# Needs dataset-fashion-mnist: exits with 77, which is "skipped", without it.
set -euo pipefail
readme=$(realpath "$1")
bin=$(realpath "$2")
here=$(realpath "$(dirname "$0")")
data=/usr/share/datasets/fashion-mnist
if [ ! -d "$data" ]; then
  echo "SKIPPED, NOTHING WAS PROVED: dataset-fashion-mnist is missing" >&2
  exit 77
fi

work=$(mktemp -d)
finish() {
  # shellcheck disable=SC2046  # one word for each process
  kill -KILL $(jobs -p) 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
cd "$work"
mkdir shims
PATH=$work/shims:$bin:$PATH

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  tail -n 20 "$work"/*.log >&2
  exit 1
}

# The host is this one.
cat >shims/scp <<'E2'
#!/bin/sh
mkdir -p "${3#*:}" && cp -r "$2" "${3#*:}"
E2
chmod +x shims/scp

# Keeps the ports until the end of the test.
PYTHONPATH=$here/python python3 -B -c '
import json, time, ports
taken = ports.Ports()
cluster = {task: [taken.address()] for task in ("chief", "ps", "worker")}
print(json.dumps({"cluster": cluster}), flush=True)
time.sleep(3600)' >cluster.json 2>ports.log &
until [ -s cluster.json ]; do
  kill -0 $! 2>/dev/null || fail "there are no ports"
  sleep 0.05
done
cat >job.textproto <<E2
name: "fashion" train_steps: 1000000 batch_size: 10
model { kind: "softmax" }
data {
  train_images: "$data/train-images-idx3-ubyte.gz"
  train_labels: "$data/train-labels-idx1-ubyte.gz"
}
checkpoint { directory: "$work/checkpoints" }
E2

# config_of ROLE: the TF_CONFIG of the only task of a role.
config_of() {
  python3 -c 'import json, sys
config = json.load(open("cluster.json"))
config["task"] = {"type": sys.argv[1], "index": 0}
print(json.dumps(config))' "$1"
}

# The lines of the section's first block, with this test's directory.
sed -n '/^## Securing a job$/,/^[^ #]/s/^    //p' "$readme" |
  sed "s|/etc/lockstep/tls|$work/host|g" >lines
[ "$(wc -l <lines)" -eq 10 ] || fail "not ten lines: $(cat lines)"
server=$(grep -n '^ps_server ' lines | cut -d: -f1)
head -n $((server - 1)) lines >before
tail -n +$((server + 1)) lines >after
sed -n "${server}s/ \.\.\. .*//p" lines >starts
grep -q -- '--tls_dir' starts || fail "the server has no certificates"

bash -eux before >before.log 2>&1 || fail "$(cat before)"
TF_CONFIG=$(config_of ps) bash -c "exec $(cat starts)" >ps.log 2>&1 &
tasks=($!)
TF_CONFIG=$(config_of chief) chief --job job.textproto \
  --tls_dir certs/chief-0 >chief.log 2>&1 &
tasks+=($!)
TF_CONFIG=$(config_of worker) worker --data_root "$data" \
  --tls_dir certs/worker-0 >worker.log 2>&1 &
tasks+=($!)

trains() {
  lockstep status --cluster cluster.json --tls_dir certs/operator-read --json \
    2>/dev/null | grep -Eq '"global_step": *[1-9]'
}
deadline=$((SECONDS + 120))
until trains; do
  [ "$SECONDS" -lt "$deadline" ] || fail "the job does not train"
  sleep 0.2
done

bash -eux after >after.log 2>&1 || fail "$(cat after)"
for words in 'chief 0 of job fashion' 'ps 0 of job fashion' \
  'worker 0 of job fashion' 'lockstep://fashion/operator/steer'; do
  grep -qF "$words" after.log || fail "nothing says \"$words\""
done
# The job was stopped by an operator.
for task in "${tasks[@]}"; do
  code=0
  wait "$task" || code=$?
  [ "$code" -eq 3 ] || fail "process $task of the job ended with $code, not with 3"
done
echo "the page's ten lines secure a job"
