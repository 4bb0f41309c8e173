# shellcheck shell=bash
# Sourced by the jobs on the text of the Bible, from the root of the repository.
#
#   run_bible_job NAME ARGUMENT...   installs what is missing, builds, prints the
#                                    text to files, and does what run_job does
#
# Words and pairs of words are hashed to `bible_features` numbers, if that is set.

# shellcheck source=deploy/examples/jobs/job.sh
source deploy/examples/jobs/job.sh
job_packages=(bible-kjv bible-kjv-text python3)

run_bible_job() {
  build_job
  mkdir -p bible
  bible -f gen1:1-rev22:21 | python3 deploy/examples/jobs/bible_data.py \
    --directory bible --features "${bible_features:-1048576}"
  # Language models are scored on the end of the text.
  head -c -100000 bible/verses.txt >bible/train.txt
  tail -c 100000 bible/verses.txt >bible/test.txt
  run_job "$@"
}
