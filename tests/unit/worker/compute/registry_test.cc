#include "worker/compute/registry.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
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

TEST(BackendRegistryTest, CudaSaysThatTheBuildHasNone) {
  EXPECT_THAT(MakeBackend("cuda", {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("this build has no CUDA")));
}

TEST(BackendRegistryTest, UnknownNameListsTheKnownOnes) {
  EXPECT_THAT(
      MakeBackend("tpu", {}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("auto, cpu, cuda"), HasSubstr("got \"tpu\""))));
}

TEST(BackendRegistryTest, OptionsReachTheBackend) {
  EXPECT_THAT(MakeBackend("cpu", {.threads = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("must be in [0, 1024], got -1")));
}

}  // namespace
}  // namespace lockstep
