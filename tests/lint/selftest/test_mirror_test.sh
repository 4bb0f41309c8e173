#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=test_mirror

LOCKSTEP_ROOMS=$(mktemp)
export LOCKSTEP_ROOMS
trap 'rm -rf "$tree" "$LOCKSTEP_ROOMS"' EXIT
printf '%s\n' '# room' 'common/job nothing' 'common/rpc grpc common/job' \
  'server nothing' '  common/job' 'worker others' 'worker/compute nothing' \
  'deploy/cli nothing' 'deploy nothing' >"$LOCKSTEP_ROOMS"

fresh
plant common/job/a.cc; plant common/job/a.h; plant tests/unit/common/job/a_test.cc
plant common/rpc/b.cc; plant server/ps_server_main.cc; plant worker/worker.cc
plant worker/compute/e.h; plant tests/unit/worker/compute/e_test.cc
plant tests/e2e/anything_test.cc
expect_clean "an exact mirror passes, with what is exempt"

fresh
plant deploy/a.cc; plant tests/integration/deploy/a_test.cc
plant server/b_c.h; plant tests/unit/server/b_c_d_e_test.cc
plant tests/unit/server/f_harness.cc
expect_clean "so do the three liberties"

fresh; plant server/a.cc
expect_caught "a core without a test is named" "tests/unit/server/a_test.cc"
fresh; plant deploy/cli/a.cc; plant tests/unit/deploy/a_test.cc
plant deploy/a.h
expect_caught "a test in the wrong folder does not count" "deploy/cli/a.cc"
fresh; plant tests/unit/server/a_test.cc
expect_caught "a test without a source is named" "tests nothing"
fresh; plant tests/unit/server/a_b_test.cc; plant server/b.h; plant common/a.h
expect_caught "an aspect alone is no source, nor is another folder's" "nothing"
fresh; plant tests/unit/server/a.cc; plant server/a.h
expect_caught "a unit test is named _test" "ends in _test.cc"
finish
