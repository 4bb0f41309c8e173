#!/usr/bin/env bash
# Trains bible_testament on this machine with all its processes, from the
# text that Debian's bible-kjv-text has. Arguments are passed on to `lockstep run`.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
# shellcheck source=deploy/examples/jobs/bible_job.sh
source deploy/examples/jobs/bible_job.sh

run_bible_job bible_testament "$@"
