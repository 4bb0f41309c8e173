#!/usr/bin/env bash
# Trains bible_embeddings on this machine with all its processes, from the
# text that Debian's bible-kjv-text has. Arguments are passed on to `lockstep run`.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
# shellcheck source=deploy/examples/jobs/bible_job.sh
source deploy/examples/jobs/bible_job.sh

run_bible_job bible_embeddings "$@"

# Counts the pairs whose second word is among the 30 nearest of the first.
build/release/bin/lockstep nearest --text bible/verses.txt \
  --checkpoints "$checkpoints" --pairs deploy/examples/jobs/bible_embeddings/pairs.txt
