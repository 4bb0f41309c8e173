#include "server/shard/parts/share_memory.h"

#include <cstdint>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

JobConfig Shared(int numbers) {
  JobConfig job;
  job.work = Work::kShared;
  job.micro_batches_per_step = numbers;
  return job;
}

PartSpec Floats(int64_t count) {
  PartSpec part;
  part.count = count;
  part.dtype = DType::kFloat32;
  return part;
}

constexpr size_t kMebibyte = size_t{1} << 20;

TEST(ShareMemoryTest, AsManyGradientsAsTheMemoryHoldsAreTaken) {
  const std::vector<PartSpec> parts = {Floats(1 << 18), Floats(1 << 18)};

  EXPECT_THAT(CheckSharesFit(Shared(8), parts, 16 * kMebibyte), IsOk());
  EXPECT_THAT(
      CheckSharesFit(Shared(9), parts, 16 * kMebibyte),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("micro_batches_per_step is 9"),
                     HasSubstr("2 MiB"), HasSubstr("16 MiB"),
                     HasSubstr("set micro_batches_per_step to at most 8"))));
}

TEST(ShareMemoryTest, SumsOfMicroBatchesNeedLessMemory) {
  JobConfig job = Shared(15);
  job.micro_batches_per_push = 2;
  EXPECT_THAT(CheckSharesFit(job, {Floats(1 << 18)}, 8 * kMebibyte), IsOk());
  EXPECT_THAT(
      CheckSharesFit(job, {Floats(1 << 18)}, 7 * kMebibyte),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("micro_batches_per_step is 15"),
                     HasSubstr("set micro_batches_per_step to at most 14"))));
}

TEST(ShareMemoryTest, SumsOfMicroBatchesWithOtherBitsAreRefused) {
  JobConfig job = Shared(4);
  PartSpec part = Floats(8);
  part.dtype = DType::kBFloat16;
  EXPECT_THAT(CheckSharesFit(job, {part}, kMebibyte), IsOk());
  job.micro_batches_per_push = 2;
  EXPECT_THAT(CheckSharesFit(job, {part}, kMebibyte),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("micro_batches_per_push is 2, but the job has "
                                 "a variable of bfloat16")));
  part = Floats(8);
  part.row_width = 4;
  EXPECT_THAT(CheckSharesFit(job, {part}, kMebibyte), IsOk());
}

TEST(ShareMemoryTest, OrdinaryJobNeedsNoSuchMemory) {
  EXPECT_THAT(CheckSharesFit(JobConfig(), {Floats(1 << 30)}, 1), IsOk());
}

TEST(ShareMemoryTest, ProductThatOverflowsIsRefused) {
  EXPECT_FALSE(CheckSharesFit(Shared(4096),
                              {Floats(std::numeric_limits<int64_t>::max() / 8)},
                              std::numeric_limits<size_t>::max())
                   .ok());
}

}  // namespace
}  // namespace lockstep::server
