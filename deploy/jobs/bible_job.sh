# Sourced by the jobs on the text of the Bible, from the root of the repository.
#
#   run_bible_job NAME ARGUMENT...   installs what is missing, builds, prints the
#                                    text to files, and runs deploy/jobs/NAME;
#                                    arguments are passed on to `lockstep run`
#
# Words and pairs of words are hashed to `bible_features` numbers, if that is set.
#
# Sets `checkpoints` to the folder of this run, a new one each time, so that none
# goes on from the one before.

# shellcheck source=deploy/packages.sh
source deploy/packages.sh

run_bible_job() {
  local job=deploy/jobs/$1
  shift
  need_packages "${LOCKSTEP_BUILD_PACKAGES[@]}" bible-kjv bible-kjv-text
  [ -f build/release/build.ninja ] || cmake --preset release
  cmake --build build/release --target ps_server worker chief lockstep bible_data
  mkdir -p bible
  bible -f gen1:1-rev22:21 | build/release/bin/bible_data --directory bible \
    --features "${bible_features:-1048576}"
  # Language models are scored on the end of the text.
  head -c -100000 bible/verses.txt >bible/train.txt
  tail -c 100000 bible/verses.txt >bible/test.txt
  checkpoints=checkpoints/$(basename "$job")/$(date +%Y%m%d-%H%M%S)
  build/release/bin/lockstep run \
    --cluster "$job/cluster.json" --job "$job/job.textproto" \
    --set "checkpoint.directory=$checkpoints" "$@"
}
