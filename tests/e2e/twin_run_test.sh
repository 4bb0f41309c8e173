#!/usr/bin/env bash
# Compares 100 steps of compatible mode with TensorFlow's own optimizer:
#
#   twin_run_test.sh PROGRAM_DIR WRITE_TWIN_INPUTS [OPTIMIZER...]
#
# Needs a Python with TensorFlow, $LOCKSTEP_TENSORFLOW_PYTHON or python3, and
# Fashion-MNIST. Exit code 77 if there is none: nothing has been compared.
set -euo pipefail
programs=$1
write_inputs=$2
shift 2
optimizers=${*:-GRADIENT_DESCENT MOMENTUM ADAM}
python=${LOCKSTEP_TENSORFLOW_PYTHON:-python3}
data=/usr/share/datasets/fashion-mnist
here=$(dirname "$0")
seed=7 steps=100 batch=64 workers=1 aggregated=2

skip() {
  echo "SKIPPED: $1; nothing has been compared." >&2
  exit 77
}

[[ -d $data ]] || skip "there is no $data"
"$python" -c 'import tensorflow' 2>/dev/null ||
  skip "$python has no TensorFlow; set LOCKSTEP_TENSORFLOW_PYTHON"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo '{"cluster": {"chief": ["localhost:0"],
  "ps": ["localhost:0", "localhost:0"],
  "worker": ["localhost:0"]}}' > "$scratch/cluster.json"
"$write_inputs" $seed 60000 784 10 $batch $workers \
  $((steps * aggregated)) > "$scratch/inputs"

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
mode: COMPATIBLE
replicas_to_aggregate: $aggregated
total_num_replicas: $workers
initial_tokens: $((aggregated - workers))
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
  "$programs/lockstep" run --cluster "$scratch/cluster.json" \
    --job "$scratch/job.textproto" --log_dir "$scratch/logs-$optimizer" \
    > "$scratch/run.log" 2>&1 || { cat "$scratch/run.log"; exit 1; }
  "$python" "$here/twin_run.py" "$optimizer" "$scratch/inputs" \
    "$scratch/$optimizer"/*/model.safetensors \
    "$data/train-images-idx3-ubyte.gz" "$data/train-labels-idx1-ubyte.gz" \
    2> "$scratch/python.log" || { cat "$scratch/python.log"; exit 1; }
done
