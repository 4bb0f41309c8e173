// Whole passes of models on simulated devices.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda_on_cpu/control.h"
#include "tests/cuda_on_cpu/device_trainer.h"

namespace lockstep::testing {
namespace {

// Launched, recorded, and replayed. Attention takes long on a CPU.
int PassesOf(const TrainedModel& trained) {
  return trained.kind == "transformer" ? 3 : 5;
}

// Seeds of a kind of model. Rows of many threads take long on a CPU, attention
// longer, and everything does where sanitizers watch.
uint64_t SeedsOf(const std::string& kind) {
  const char* given = std::getenv("LOCKSTEP_CUDA_SEEDS");
  if (given != nullptr) return std::strtoull(given, nullptr, 10);
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return kind == "transformer" ? 3 : kind == "resnet" ? 6 : 30;
#endif
#endif
  return kind == "transformer" ? 15 : kind == "resnet" ? 60 : 1000;
}

class CudaModelsTest : public ::testing::TestWithParam<TrainedModel> {
 protected:
  struct Run {
    std::vector<std::vector<float>> results;
    int64_t replays = 0;
  };

  void SetUp() override { cuda_on_cpu::Configure({}); }

  // The passes of the model on a device without delays, computed once.
  static const Run& WithoutDelays(const TrainedModel& trained) {
    static auto& runs = *new std::map<std::string, Run>();
    const auto [found, is_new] = runs.try_emplace(NameOf(trained));
    Run& run = found->second;
    if (is_new) {
      run.results = Passes("cuda", trained, PassesOf(trained), &run.replays);
    }
    return run;
  }

  void TearDown() override { EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0u); }
};

TEST_P(CudaModelsTest, AgreesWithTheCpu) {
  const auto expected = Passes("cpu", GetParam(), PassesOf(GetParam()));
  const auto& found = WithoutDelays(GetParam()).results;

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
  EXPECT_EQ(WithoutDelays(GetParam()).replays,
            GetParam().micro_batches == 1 ? PassesOf(GetParam()) - 1 : 0);
}

TEST_P(CudaModelsTest, HasTheSameBitsWhateverTheDelays) {
  const int passes = PassesOf(GetParam());
  const auto& expected = WithoutDelays(GetParam()).results;

  // The three models of a kind share the seeds.
  const int variant = GetParam().micro_batches > 1   ? 1
                      : GetParam().refuse_non_finite ? 2
                                                     : 3;
  for (uint64_t seed = variant; seed <= SeedsOf(GetParam().kind); seed += 3) {
    cuda_on_cpu::Configure({.seed = seed});
    ASSERT_EQ(Passes("cuda", GetParam(), passes), expected) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, CudaModelsTest, ::testing::ValuesIn(TrainedModels()),
    [](const ::testing::TestParamInfo<TrainedModel>& info) {
      return NameOf(info.param);
    });

}  // namespace
}  // namespace lockstep::testing
