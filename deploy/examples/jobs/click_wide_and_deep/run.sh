#!/usr/bin/env bash
# Trains click_wide_and_deep on this machine with all its processes, from files
# that it makes first. Arguments are passed on to `lockstep run`.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
# shellcheck source=deploy/examples/jobs/job.sh
source deploy/examples/jobs/job.sh

build_job click_data
mkdir -p clicks
build/release/bin/click_data --directory clicks
run_job click_wide_and_deep "$@"
