#!/usr/bin/env bash
# Trains bible_gpt on this machine with all its processes, on the text that
# Debian's bible-kjv-text has, and lets it write some more. Arguments are passed
# on to `lockstep run`.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
# shellcheck source=deploy/examples/jobs/bible_job.sh
source deploy/examples/jobs/bible_job.sh

run_bible_job bible_gpt "$@"

build/release/bin/lockstep sample --checkpoints "$checkpoints" \
  --job deploy/examples/jobs/bible_gpt/job.textproto
