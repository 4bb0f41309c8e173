# shellcheck shell=bash
# Sourced by jobs, from the root of the repository.
#
#   build_job                installs what is missing, and builds the programs
#   run_job NAME ARGUMENT... runs deploy/examples/jobs/NAME; arguments are passed on to
#                            `lockstep run`
#
# job_packages are installed besides those that a build needs. run_job sets
# `checkpoints` to the folder of this run, a new one each time, so that none goes
# on from the one before.

# shellcheck source=deploy/packages.sh
source deploy/packages.sh
job_packages=()

build_job() {
  need_packages "${LOCKSTEP_BUILD_PACKAGES[@]}" "${job_packages[@]}"
  [ -f build/release/build.ninja ] || cmake --preset release
  cmake --build build/release --target ps_server worker chief lockstep
}

run_job() {
  local job=deploy/examples/jobs/$1
  shift
  checkpoints=checkpoints/$(basename "$job")/$(date +%Y%m%d-%H%M%S)
  build/release/bin/lockstep run \
    --cluster "$job/cluster.json" --job "$job/job.textproto" \
    --set "checkpoint.directory=$checkpoints" "$@"
}
