#include "worker/compute/cpu/cpu_backend.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The conformance suite tests the operations; here is what only this backend
// promises.

TEST(CpuBackendTest, ThreadsOutOfRangeAreRefused) {
  for (const int threads : {-1, 1025}) {
    EXPECT_THAT(CpuBackend::Make({.threads = threads}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("threads of the cpu backend")));
  }
}

TEST(CpuBackendTest, WorksOnMemoryOfOthers) {
  auto backend = CpuBackend::Make({.threads = 1});
  ASSERT_OK(backend);
  std::vector<float> values = {-1, 2};
  const Tensor view = Tensor::Of<float>(absl::MakeSpan(values), {2});

  ASSERT_OK((*backend)->Relu(view, view));

  EXPECT_THAT(values, ElementsAre(0, 2));
}

TEST(CpuBackendTest, UnalignedMemoryGivesTheProduct) {
  auto backend = CpuBackend::Make({.threads = 1});
  ASSERT_OK(backend);
  std::vector<float> values = {9, 1, 2, 3, 4, 9, 9, 9, 9};
  const Tensor a =
      Tensor::Of<float>(absl::MakeSpan(values).subspan(1, 4), {2, 2});
  const Tensor out =
      Tensor::Of<float>(absl::MakeSpan(values).subspan(5, 4), {2, 2});

  ASSERT_OK((*backend)->MatMul(a, a, {}, out));

  EXPECT_THAT(values, ElementsAre(9, 1, 2, 3, 4, 7, 10, 15, 22));
}

// A column may have a row for each pixel of each picture of a batch.
TEST(CpuBackendTest, StatisticsOfManyEqualValuesAreExact) {
  auto backend = CpuBackend::Make({.threads = 1});
  ASSERT_OK(backend);
  constexpr int64_t kRows = 1605632;  // 128 pictures of 112 by 112
  std::vector<float> ones(kRows, 1);
  std::vector<float> statistics(2);

  ASSERT_OK((*backend)->BatchStatistics(
      Tensor::Of<float>(absl::MakeSpan(ones), {kRows, 1}),
      Tensor::Of<float>(absl::MakeSpan(statistics), {2, 1})));

  EXPECT_NEAR(statistics[0], 1, 1e-6);
  EXPECT_LT(statistics[1], 1e-10);
}

TEST(CpuBackendTest, MoreMemoryThanAnyMachineHasIsAnError) {
  auto backend = CpuBackend::Make({});
  ASSERT_OK(backend);

  EXPECT_THAT((*backend)->Allocate((size_t{1} << 40) + 1),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("1099511627777 bytes")));
}

TEST(CpuBackendTest, ConvolutionWithoutScratchMemoryIsAnError) {
  auto backend = CpuBackend::Make({});
  ASSERT_OK(backend);
  constexpr int64_t kSide = 2147483647;
  float memory = 0;
  const ConstTensor images(ElementType::kFloat32, {1, kSide, 1, 1}, &memory);
  const ConstTensor filters(ElementType::kFloat32, {1025, 1, 1, 1}, &memory);
  const Tensor out(ElementType::kFloat32, {1, kSide, 1, 1}, &memory);

  EXPECT_THAT((*backend)->Conv2D(images, filters, out, {}),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace lockstep::worker
