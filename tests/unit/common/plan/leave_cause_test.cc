#include "common/plan/leave_cause.h"

#include "gtest/gtest.h"
#include "lockstep/v1/coordinator.pb.h"

namespace lockstep {
namespace {

// wire_codec.cc casts one to the other.
TEST(LeaveCauseTest, EachCauseHasItsNumberOnTheWire) {
  EXPECT_EQ(static_cast<int>(LeaveCause::kDone), v1::LEAVE_DONE);
  EXPECT_EQ(static_cast<int>(LeaveCause::kEndOfInput), v1::LEAVE_END_OF_INPUT);
  EXPECT_EQ(static_cast<int>(LeaveCause::kCannotTakePart),
            v1::LEAVE_CANNOT_TAKE_PART);
  EXPECT_EQ(static_cast<int>(LeaveCause::kNoRoom), v1::LEAVE_NO_ROOM);
  EXPECT_EQ(static_cast<int>(LeaveCause::kStopped), v1::LEAVE_STOPPED);
}

}  // namespace
}  // namespace lockstep
