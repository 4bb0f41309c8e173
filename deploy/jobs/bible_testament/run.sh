#!/usr/bin/env bash
# Trains bible_testament on this machine with all its processes, from the text
# that Debian's bible-kjv-text has. Arguments are passed on to `lockstep run`.
set -euo pipefail
cd "$(dirname "$0")/../../.."
# shellcheck source=deploy/packages.sh
source deploy/packages.sh

need_packages "${LOCKSTEP_BUILD_PACKAGES[@]}" bible-kjv bible-kjv-text

[ -f build/release/build.ninja ] || cmake --preset release
cmake --build build/release --target ps_server worker chief lockstep bible_data

mkdir -p bible
bible -f gen1:1-rev22:21 | build/release/bin/bible_data --directory bible

job=deploy/jobs/bible_testament
# A folder of its own for each run, so that none goes on from the one before.
checkpoints=checkpoints/bible_testament/$(date +%Y%m%d-%H%M%S)
build/release/bin/lockstep run \
  --cluster "$job/cluster.json" --job "$job/job.textproto" \
  --set "checkpoint.directory=$checkpoints" "$@"
