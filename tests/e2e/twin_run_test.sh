#!/usr/bin/env bash
# Compares 100 steps with those of TensorFlow, from the same values on the same
# batches:
#
#   twin_run_test.sh PROGRAM_DIR WRITE_TWIN_INPUTS KIND [OPTIMIZER...]
#
# KIND is one of
#   compatible   SyncReplicasOptimizer, one worker that makes both gradients
#   strict       SyncReplicasOptimizer, two workers
#   mirrors      MultiWorkerMirroredStrategy, two workers
#
# Needs a Python with TensorFlow, $LOCKSTEP_TENSORFLOW_PYTHON or python3, and
# Fashion-MNIST. Exit code 77 if there is none.
set -euo pipefail
programs=$1
write_inputs=$2
kind=$3
shift 3
optimizers=${*:-GRADIENT_DESCENT MOMENTUM ADAM}
python=${LOCKSTEP_TENSORFLOW_PYTHON:-python3}
data=/usr/share/datasets/fashion-mnist
here=$(dirname "$0")
seed=7 steps=100 batch=64

skip() {
  echo "SKIPPED, NOTHING WAS PROVED: $1" >&2
  exit 77
}

[[ -d $data ]] || skip "there is no $data"
"$python" -c 'import tensorflow' 2>/dev/null ||
  skip "$python has no TensorFlow; set LOCKSTEP_TENSORFLOW_PYTHON"

workers=2 ps=2 passes=$steps twin=twin_run.py
case $kind in
  compatible)
    workers=1 passes=$((2 * steps))
    fields="mode: COMPATIBLE replicas_to_aggregate: 2 total_num_replicas: 1
      initial_tokens: 1" ;;
  strict) fields="mode: STRICT" ;;
  mirrors)
    ps=0 twin=twin_mirrored.py
    fields="strategy { kind: MULTI_WORKER_MIRRORED }" ;;
  *) echo "unknown kind $kind" >&2; exit 2 ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$write_inputs" $seed 60000 784 10 $batch $workers $passes > "$scratch/inputs"

learning_rate() {
  case $1 in
    GRADIENT_DESCENT) echo 0.1 ;;
    MOMENTUM) echo 0.05 ;;
    ADAM) echo 0.001 ;;
  esac
}

for optimizer in $optimizers; do
  cat > "$scratch/job.textproto" <<JOB
name: "twin"
seed: $seed
$fields
train_steps: $steps
batch_size: $batch
model { kind: "softmax" }
optimizer { kind: $optimizer }
learning_rate: $(learning_rate "$optimizer")
data {
  train_images: "$data/train-images-idx3-ubyte.gz"
  train_labels: "$data/train-labels-idx1-ubyte.gz"
}
checkpoint { directory: "$scratch/$optimizer" }
JOB
  servers=(--ps "$ps")
  [[ $ps -gt 0 ]] || servers=()
  "$programs/lockstep" run --workers "$workers" "${servers[@]}" \
    --job "$scratch/job.textproto" --log_dir "$scratch/logs-$optimizer" \
    > "$scratch/run.log" 2>&1 || { cat "$scratch/run.log"; exit 1; }
  "$python" "$here/$twin" "$optimizer" "$workers" "$scratch/inputs" \
    "$scratch/$optimizer"/*/model.safetensors \
    "$data/train-images-idx3-ubyte.gz" "$data/train-labels-idx1-ubyte.gz" \
    2> "$scratch/python.log" || { cat "$scratch/python.log"; exit 1; }
done
