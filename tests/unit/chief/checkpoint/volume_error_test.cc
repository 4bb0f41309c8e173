#include "chief/checkpoint/volume_error.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

TEST(VolumeErrorTest, FullVolumeNamesTheFieldAndTheRoomThatItNeeds) {
  EXPECT_EQ(OfVolume(absl::ResourceExhaustedError("/c/x: No space")),
            absl::ResourceExhaustedError(
                "checkpoint.directory: /c/x: No space; make room there for one "
                "checkpoint more than checkpoint.keep"));
}

TEST(VolumeErrorTest, OtherErrorsNameTheField) {
  EXPECT_EQ(OfVolume(absl::PermissionDeniedError("/c/x: Permission denied")),
            absl::PermissionDeniedError(
                "checkpoint.directory: /c/x: Permission denied"));
  EXPECT_EQ(OfVolume(absl::OkStatus()), absl::OkStatus());
}

}  // namespace
}  // namespace lockstep::chief
