#include "worker/compute/registry.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(BackendRegistryTest, CpuIsAlwaysThere) {
  const auto backend = MakeBackend("cpu", {});

  ASSERT_OK(backend);
  EXPECT_STREQ((*backend)->name(), "cpu");
}

TEST(BackendRegistryTest, AutoFindsOneThatWorks) {
  EXPECT_OK(MakeBackend("auto", {}));
}

// No fallback in silence: either a GPU computes, or the message says why not.
TEST(BackendRegistryTest, CudaIsAGpuOrSaysWhyNot) {
  const auto backend = MakeBackend("cuda", {});

  if (backend.ok()) {
    EXPECT_STREQ((*backend)->name(), "cuda");
    EXPECT_EQ(WhyNoGpu(), "");
  } else {
    EXPECT_THAT(backend, StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("use cpu")));
    EXPECT_EQ(WhyNoGpu(), backend.status().message());
  }
}

TEST(BackendRegistryTest, UnknownNameListsTheKnownOnes) {
  EXPECT_THAT(MakeBackend("tpu", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("device is \"tpu\""),
                             HasSubstr("auto, cpu or cuda"))));
}

TEST(BackendRegistryTest, OptionsReachTheBackend) {
  EXPECT_THAT(MakeBackend("cpu", {.threads = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("must be in [0, 1024], got -1")));
}

}  // namespace
}  // namespace lockstep::worker
