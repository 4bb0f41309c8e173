#!/bin/sh
# Proves that TensorBoard reads the summaries of a job.
#
# usage: tensorboard_test.sh VENV_DIR
#
# VENV_DIR is a virtual environment with tensorboard, made here if it is not
# there. Exits 77, which ctest shows as skipped, when there is none and none can
# be made.
set -eu

here=$(cd "$(dirname "$0")" && pwd)

skip() {
  echo "SKIPPED, NOTHING WAS PROVED: $1" >&2
  echo "TensorBoard did not read any summary." >&2
  exit 77
}

. "$here/venv_lib.sh"
# TensorBoard imports pkg_resources, which newer versions of setuptools lack.
need_venv "$1" "tensorboard.backend.event_processing.event_accumulator" \
  tensorboard "setuptools<80"
exec "$1/bin/python" "$here/python/tensorboard_test.py"
