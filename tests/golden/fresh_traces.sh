#!/usr/bin/env bash
# Records a fresh batch of random traces and replays it:
#
#   fresh_traces.sh LOCKSTEP_REPLAY [COUNT [SEED]]
#
# Needs a Python with TensorFlow: $LOCKSTEP_TENSORFLOW_PYTHON, or python3. Exit
# code 77 if there is none: nothing has been tested.
set -euo pipefail
replay=$1
count=${2:-5}
seed=${3:-$(date +%s)}
python=${LOCKSTEP_TENSORFLOW_PYTHON:-python3}
here=$(dirname "$0")

if ! "$python" -c 'import tensorflow' 2>/dev/null; then
  echo "SKIPPED, NOTHING WAS PROVED: $python has no TensorFlow." \
    "Set LOCKSTEP_TENSORFLOW_PYTHON to one that has." >&2
  exit 77
fi
traces=$(mktemp -d)
trap 'rm -rf "$traces"' EXIT
echo "seed $seed, $count scenarios of each kind"
"$python" "$here/record.py" --seed "$seed" --count "$count" --out "$traces"
"$replay" "$traces"/*.jsonl
