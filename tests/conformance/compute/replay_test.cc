#include "gtest/gtest.h"
#include "tests/conformance/compute/replay_check.h"

namespace lockstep::testing {
namespace {

TEST(ReplayTest, RecordingsOnTheTapeGiveTheBitsOfLaunches) {
  ExpectReplaysAreLaunches("tape");
}

}  // namespace
}  // namespace lockstep::testing
