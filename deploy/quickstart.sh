#!/usr/bin/env bash
# Trains a small network on Fashion-MNIST with seven processes on this machine:
# from a fresh clone on Debian 12 to a trained model. Arguments are passed on to
# `lockstep run`; see `build/release/bin/lockstep run --help`.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/packages.sh
source deploy/packages.sh

need_packages "${LOCKSTEP_BUILD_PACKAGES[@]}" "${LOCKSTEP_DATA_PACKAGES[@]}"

if [ ! -f build/release/build.ninja ]; then
  say "configuring build/release, about 10 seconds"
  cmake --preset release
  say "building the programs and the Python package," \
    "10 to 20 minutes on 2 cores, once"
fi
cmake --build build/release --target \
  ps_server worker chief lockstep lockstep_python

job=deploy/examples/jobs/fashion_mnist
# A folder of its own for each run, so that none goes on from the one before.
checkpoints=checkpoints/fashion_mnist/$(date +%Y%m%d-%H%M%S)
say "training, about half a minute: $job/job.textproto on $job/cluster.json;" \
  "checkpoints in $checkpoints"
exec build/release/bin/lockstep run \
  --cluster "$job/cluster.json" --job "$job/job.textproto" \
  --set "checkpoint.directory=$checkpoints" "$@"
