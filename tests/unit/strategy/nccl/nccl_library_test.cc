#include "strategy/nccl/nccl_library.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;

TEST(NcclLibraryTest, ALibraryThatIsMissingIsNamedWithTheFix) {
  EXPECT_THAT(LoadCuda({"libnone-such.so.1", "libnone-such.so.2"}),
              StatusIs(kRefused,
                       AllOf(HasSubstr("libnone-such.so.1, libnone-such.so.2"),
                             HasSubstr("cannot open shared object"),
                             HasSubstr("install the CUDA runtime"))));
  EXPECT_THAT(LoadNccl({"libnone-such.so.1"}),
              StatusIs(kRefused, HasSubstr("install NCCL 2.14 or newer")));
}

TEST(NcclLibraryTest, ALibraryThatLacksAFunctionIsNamed) {
  EXPECT_THAT(LoadNccl({"libc.so.6"}),
              StatusIs(kRefused, HasSubstr("libc.so.6 has no function "
                                           "ncclGetErrorString; install")));
}

TEST(NcclLibraryTest, TheFirstThatIsThereIsUsed) {
  const auto nccl =
      LoadNccl({"libnone-such.so.2", LOCKSTEP_SIMULATED_NCCL, "libc.so.6"});
  ASSERT_OK(nccl);
  int version = 0;
  EXPECT_EQ(nccl->get_version(&version), kNcclSuccess);
  EXPECT_GE(version, kOldestNccl);
}

TEST(NcclLibraryTest, ErrorsHaveTheLibrariesWords) {
  const auto cuda = LoadCuda({LOCKSTEP_SIMULATED_CUDA});
  const auto nccl = LoadNccl({LOCKSTEP_SIMULATED_NCCL});
  ASSERT_OK(cuda);
  ASSERT_OK(nccl);
  EXPECT_THAT(ToStatus(*cuda, "cudaMalloc", kCudaErrorMemoryAllocation),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("cudaMalloc: out of memory")));
  EXPECT_THAT(ToStatus(*cuda, "cudaFree", 1),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("cudaFree: invalid argument")));
  EXPECT_THAT(ToStatus(*nccl, "ncclSend", kNcclRemoteError),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("ncclSend: ")));
  EXPECT_THAT(ToStatus(*nccl, "ncclSend", kNcclInvalidUsage),
              StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(ToStatus(*cuda, "cudaFree", kCudaSuccess), IsOk());
  EXPECT_THAT(ToStatus(*nccl, "ncclSend", kNcclInProgress), IsOk());
}

}  // namespace
}  // namespace lockstep::strategy
