#!/bin/sh
# Proves that a browser shows the page of a job, with scripts and without.
#
# usage: page_test.sh PROGRAM_DIR
#
# Exits 77, which ctest shows as skipped, without Debian's packages chromium and
# dataset-fashion-mnist.
set -eu

here=$(cd "$(dirname "$0")" && pwd)

skip() {
  echo "SKIPPED, NOTHING WAS PROVED: $1" >&2
  exit 77
}

command -v chromium >/dev/null ||
  skip "there is no browser; install Debian's package chromium"
[ -r /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ] ||
  skip "there are no pictures; install Debian's package dataset-fashion-mnist"
# For ports.py.
PYTHONPATH=$here/../python exec python3 "$here/page_test.py" "$1"
