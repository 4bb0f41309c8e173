// Strict mode with every worker in every set: repeated runs give the same bits,
// for any number of stops and servers.

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kHalf = 30;
constexpr int64_t kWhole = 60;

struct Recipe {
  std::string name;
  std::vector<std::string> set;
};

const Recipe kRecipes[] = {
    {"MomentumMlp", {"optimizer.kind=MOMENTUM", "model.kind=mlp"}},
    {"NesterovSoftmax",
     {"optimizer.kind=MOMENTUM", "optimizer.use_nesterov=true",
      "model.kind=softmax", "model.hidden_units="}},
    {"AdamCnn",
     {"optimizer.kind=ADAM", "learning_rate=0.002", "model.kind=cnn",
      "model.conv_filters=4", "batch_size=16"}},
    {"DecayingDescent",
     {"optimizer.kind=GRADIENT_DESCENT", "learning_rate=0.2",
      "learning_rate_schedule.kind=COSINE_DECAY",
      "learning_rate_schedule.decay_steps=200",
      "learning_rate_schedule.warmup_steps=10"}},
};

std::vector<std::string> UpTo(int64_t steps, std::vector<std::string> set) {
  set.push_back(absl::StrCat("train_steps=", steps));
  return set;
}

class DeterminismTest : public ::testing::TestWithParam<Recipe> {};

TEST_P(DeterminismTest, TwoRunsGiveTheSameBits) {
  auto one = TrainingJob::Make({.set = UpTo(kWhole, GetParam().set)});
  auto other = TrainingJob::Make({.set = UpTo(kWhole, GetParam().set)});

  ASSERT_THAT(one->Run(), IsOk());
  ASSERT_THAT(other->Run(), IsOk());

  ExpectSameBits(one->checkpoints(), other->checkpoints(), kWhole);
}

// One job is stopped half-way, and continues with 1, 2 and 3 servers.
TEST_P(DeterminismTest, ResumingOnAnyNumberOfServersGivesTheSameBits) {
  auto whole = TrainingJob::Make({.set = UpTo(kWhole, GetParam().set)});
  auto half = TrainingJob::Make({.set = UpTo(kHalf, GetParam().set)});
  ASSERT_THAT(whole->Run(), IsOk());
  ASSERT_THAT(half->Run(), IsOk());

  for (const int servers : {1, 2, 3}) {
    const TempDir copy;
    std::filesystem::copy(half->checkpoints(), copy.path(),
                          std::filesystem::copy_options::recursive);
    auto rest = TrainingJob::Make({.servers = servers,
                                   .set = UpTo(kWhole, GetParam().set),
                                   .checkpoints = copy.path()});
    ASSERT_THAT(rest->Run(), IsOk());

    EXPECT_THAT(rest->cluster().ReadLog("chief", 0),
                IsOkAndHolds(HasSubstr("resumed from the checkpoint of step")));
    ExpectSameBits(whole->checkpoints(), copy.path(), kWhole);
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, DeterminismTest,
                         ::testing::ValuesIn(kRecipes),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep::testing
