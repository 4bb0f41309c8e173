#!/usr/bin/env bash
# Trains click_wide_and_deep on this machine with all its processes, from files
# that it makes first. Arguments are passed on to `lockstep run`.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
# shellcheck source=deploy/examples/jobs/job.sh
source deploy/examples/jobs/job.sh

job_packages=(python3)
build_job
mkdir -p clicks
python3 deploy/examples/jobs/click_wide_and_deep/click_data.py --directory clicks
run_job click_wide_and_deep "$@"
