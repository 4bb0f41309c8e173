#!/bin/sh
# Proves that a Prometheus server scrapes all processes of a job, that the
# dashboard's queries have answers, and that the alert rules alert.
#
# usage: prometheus_test.sh PROGRAM_DIR
#
# Exits 77, which ctest shows as skipped, without Debian's packages prometheus
# and dataset-fashion-mnist.
set -eu

here=$(cd "$(dirname "$0")" && pwd)

skip() {
  echo "SKIPPED, NOTHING WAS PROVED: $1" >&2
  exit 77
}

for program in prometheus promtool; do
  command -v "$program" >/dev/null ||
    skip "there is no $program; install Debian's package prometheus"
done
[ -r /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ] ||
  skip "there are no pictures; install Debian's package dataset-fashion-mnist"
# For ports.py.
PYTHONPATH=$here/../python exec python3 "$here/prometheus_test.py" "$1"
