// Whole passes of models on simulated devices.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda_on_cpu/control.h"
#include "tests/cuda_on_cpu/device_trainer.h"

namespace lockstep::testing {
namespace {

constexpr int kPasses = 5;  // launched, recorded, and replayed three times
constexpr uint64_t kSeeds = 1000;

class CudaModelsTest : public ::testing::TestWithParam<TrainedModel> {
 protected:
  void SetUp() override { cuda_on_cpu::Configure({}); }
  void TearDown() override { EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0u); }
};

TEST_P(CudaModelsTest, AgreesWithTheCpu) {
  const auto expected = Passes("cpu", GetParam(), kPasses);
  const auto found = Passes("cuda", GetParam(), kPasses);

  ASSERT_EQ(found.size(), expected.size());
  for (size_t pass = 0; pass < found.size(); ++pass) {
    ASSERT_EQ(found[pass].size(), expected[pass].size());
    float largest = 1;
    for (const float x : expected[pass]) {
      largest = std::max(largest, std::abs(x));
    }
    for (size_t i = 0; i < found[pass].size(); ++i) {
      ASSERT_NEAR(found[pass][i], expected[pass][i], 1e-5 * largest)
          << "pass " << pass + 1 << ", number " << i;
    }
  }
}

TEST_P(CudaModelsTest, IsReplayedIfItCanBe) {
  auto trainer = DeviceTrainer::Make("cuda", GetParam());
  ASSERT_OK(trainer);
  for (int step = 1; step <= kPasses; ++step) ASSERT_OK((*trainer)->Pass(step));

  EXPECT_EQ((*trainer)->replays(), GetParam().micro_batches == 1 ? 4 : 0);
}

TEST_P(CudaModelsTest, HasTheSameBitsWhateverTheDelays) {
  const auto expected = Passes("cuda", GetParam(), kPasses);

  // The models of a kind share the seeds.
  for (uint64_t seed = 1 + std::hash<std::string>()(NameOf(GetParam())) % 3;
       seed <= kSeeds; seed += 3) {
    cuda_on_cpu::Configure({.seed = seed});
    ASSERT_EQ(Passes("cuda", GetParam(), kPasses), expected) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, CudaModelsTest, ::testing::ValuesIn(TrainedModels()),
    [](const ::testing::TestParamInfo<TrainedModel>& info) {
      return NameOf(info.param);
    });

}  // namespace
}  // namespace lockstep::testing
