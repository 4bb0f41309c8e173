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
made=$venv.made.$$
here=$(cd "$(dirname "$0")" && pwd)

skip() {
  rm -rf "$made"
  echo "SKIPPED, NOT PROVED: $1" >&2
  echo "The safetensors library did not read any checkpoint." >&2
  exit 77
}

usable() {
  [ -x "$1/bin/python" ] &&
    "$1/bin/python" -c 'import numpy, safetensors.numpy' 2>/dev/null
}

# Made under another name first: one that was interrupted is never taken for
# a good one. Environments cannot be moved, hence the link.
make_venv() {
  command -v python3 >/dev/null || skip "there is no python3"
  mkdir -p "$(dirname "$venv")"
  python3 -m venv "$made" || skip "python3 -m venv does not work"
  "$made/bin/python" -m pip install --quiet safetensors numpy ||
    skip "pip cannot install safetensors and numpy"
  usable "$made" || skip "safetensors and numpy cannot be imported"
  rm -rf "$venv"
  ln -sfn "$(basename "$made")" "$venv"
}

usable "$venv" || make_venv

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$binary" "$scratch/sample"
shift 2
"$venv/bin/python" "$here/safetensors_reads_checkpoint.py" \
  "$scratch/sample" "$@"
