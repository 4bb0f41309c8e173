#!/bin/sh
# Proves that the safetensors library can read our files.
#
# usage: safetensors_reads_checkpoint.sh BINARY VENV_DIR [CHECKPOINT_DIR]
#
# BINARY is write_sample_checkpoint. VENV_DIR is a virtual environment with
# safetensors and numpy, made here if it is not there. CHECKPOINT_DIR, of a
# real run, is checked too. Exits 77, which ctest shows as skipped, when there
# is no such environment and none can be made.
set -eu

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
  sed -n 's/^# \(usage:.*\)/\1/p' "$0" >&2
  exit 1
fi
binary=$1
venv=$2
here=$(cd "$(dirname "$0")" && pwd)

skip() {
  echo "SKIPPED, NOTHING WAS PROVED: $1" >&2
  echo "The safetensors library did not read any checkpoint." >&2
  exit 77
}

. "$here/venv_lib.sh"
need_venv "$venv" "numpy, safetensors.numpy" safetensors numpy

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$binary" "$scratch/sample"
shift 2
"$venv/bin/python" "$here/safetensors_reads_checkpoint.py" \
  "$scratch/sample" "$@"
