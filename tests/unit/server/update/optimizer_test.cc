#include "server/update/optimizer.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include "common/numeric/bfloat16.h"
#include "common/numeric/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/update/mean_reader.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

OptimizerConfig Config(OptimizerConfig::Kind kind) {
  OptimizerConfig config;
  config.kind = kind;
  return config;
}

template <typename T>
absl::Span<std::byte> Bytes(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(T)};
}

// A part with two slots and its gradients; tests change what they are about.
template <typename T>
struct Part {
  explicit Part(size_t count)
      : value(count, 1),
        new_value(count),
        slot0(count),
        slot1(count),
        new_slot0(count),
        new_slot1(count) {}

  void AddGradient(std::vector<T> gradient) {
    gradients.push_back(std::move(gradient));
  }

  ApplyInput Input() {
    slices.clear();
    for (std::vector<T>& gradient : gradients) {
      slices.push_back({Bytes(gradient).data(), Bytes(gradient).size()});
    }
    views.clear();
    for (const ByteSlice& slice : slices) views.push_back({{&slice, 1}});
    ApplyInput input;
    input.dtype = sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64;
    input.learning_rate = 0.5;
    input.powers = {0.9f, 0.999f};
    input.gradients = views;
    input.old_value = Bytes(value);
    input.new_value = Bytes(new_value);
    input.old_slots = {Bytes(slot0), Bytes(slot1)};
    input.new_slots = {Bytes(new_slot0), Bytes(new_slot1)};
    return input;
  }

  std::vector<T> value, new_value, slot0, slot1, new_slot0, new_slot1;
  std::vector<std::vector<T>> gradients;
  std::vector<ByteSlice> slices;
  std::vector<GradientSlices> views;
};

TEST(OptimizerTest, GradientDescentSubtractsTheScaledGradient) {
  const Optimizer optimizer(Config(OptimizerConfig::Kind::kGradientDescent));
  Part<float> part(3);
  part.AddGradient({1, 2, -4});

  ASSERT_OK(optimizer.Apply(part.Input()));

  EXPECT_THAT(part.new_value, ElementsAre(0.5f, 0.0f, 3.0f));
  EXPECT_THAT(part.value, ElementsAre(1, 1, 1));
}

TEST(OptimizerTest, MeanOfSeveralGradientsIsApplied) {
  const Optimizer optimizer(Config(OptimizerConfig::Kind::kGradientDescent));
  Part<double> part(2);
  part.AddGradient({1, 10});
  part.AddGradient({3, 20});
  ApplyInput input = part.Input();
  input.divisor = 2;

  ASSERT_OK(optimizer.Apply(input));

  EXPECT_THAT(part.new_value, ElementsAre(0.0, -6.5));
}

TEST(OptimizerTest, MomentumKeepsItsSlot) {
  OptimizerConfig config = Config(OptimizerConfig::Kind::kMomentum);
  config.momentum = 0.5;
  Part<float> part(1);
  part.slot0 = {4};
  part.AddGradient({1});

  ASSERT_OK(Optimizer(config).Apply(part.Input()));

  EXPECT_THAT(part.new_slot0, ElementsAre(3.0f));
  EXPECT_THAT(part.new_value, ElementsAre(-0.5f));
}

TEST(OptimizerTest, NesterovLooksOneStepAhead) {
  OptimizerConfig config = Config(OptimizerConfig::Kind::kMomentum);
  config.momentum = 0.5;
  config.use_nesterov = true;
  Part<float> part(1);
  part.slot0 = {4};
  part.AddGradient({1});

  ASSERT_OK(Optimizer(config).Apply(part.Input()));

  EXPECT_THAT(part.new_slot0, ElementsAre(3.0f));
  EXPECT_THAT(part.new_value, ElementsAre(1 - (0.5f + 0.75f)));
}

TEST(OptimizerTest, FirstAdamStepIsAsLongAsTheLearningRate) {
  Part<double> part(2);
  part.AddGradient({100, -0.01});

  ASSERT_OK(
      Optimizer(Config(OptimizerConfig::Kind::kAdam)).Apply(part.Input()));

  EXPECT_NEAR(part.new_value[0], 0.5, 1e-6);
  EXPECT_NEAR(part.new_value[1], 1.5, 1e-4);  // epsilon shows here
  EXPECT_NEAR(part.new_slot0[0], 10, 1e-5);
  EXPECT_NEAR(part.new_slot1[0], 10, 1e-3);
}

TEST(OptimizerTest, LearningRateIsFloat32First) {
  const Optimizer optimizer(Config(OptimizerConfig::Kind::kGradientDescent));
  Part<double> part(1);
  part.value = {0};
  part.AddGradient({-1});
  ApplyInput input = part.Input();
  input.learning_rate = 0.1;

  ASSERT_OK(optimizer.Apply(input));

  EXPECT_THAT(part.new_value, ElementsAre(0.10000000149011612));
}

TEST(OptimizerTest, InPlaceGivesTheSameBitsAsApart) {
  const Optimizer optimizer(Config(OptimizerConfig::Kind::kAdam));
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  Part<float> part(5000);
  std::vector<float> gradient(5000);
  for (float& g : gradient) g = normal(generator);
  for (float& w : part.value) w = normal(generator);
  part.AddGradient(gradient);
  ASSERT_OK(optimizer.Apply(part.Input()));
  ApplyInput in_place = part.Input();
  in_place.new_value = Bytes(part.value);
  in_place.new_slots = {Bytes(part.slot0), Bytes(part.slot1)};

  ASSERT_OK(optimizer.Apply(in_place));

  EXPECT_EQ(part.value, part.new_value);
  EXPECT_EQ(part.slot0, part.new_slot0);
  EXPECT_EQ(part.slot1, part.new_slot1);
}

// The same update, one element after the other with no blocks and no slices.
float PlainMomentum(const std::vector<std::vector<float>>& gradients, size_t i,
                    float value, float& slot) {
  float sum = gradients[0][i];
  for (size_t g = 1; g < gradients.size(); ++g) sum = sum + gradients[g][i];
  const float mean = sum / static_cast<float>(gradients.size());
  slot = slot * 0.9f;
  slot = slot + mean;
  const float step = slot * 0.5f;
  return value - step;
}

TEST(OptimizerTest, TornUnalignedSlicesGiveTheBitsOfAPlainLoop) {
  constexpr size_t kCount = 4099;
  std::mt19937 generator(11);
  std::normal_distribution<float> normal;
  Part<float> part(kCount);
  for (float& s : part.slot0) s = normal(generator);
  std::vector<std::vector<ByteSlice>> torn(3);
  for (int worker = 0; worker < 3; ++worker) {
    std::vector<float> gradient(kCount);
    for (float& g : gradient) g = normal(generator);
    part.AddGradient(gradient);
  }
  ApplyInput input = part.Input();
  for (int worker = 0; worker < 3; ++worker) {
    const ByteSlice whole = part.slices[worker];
    for (size_t at = 0; at < whole.size;) {
      const size_t size = std::min<size_t>(generator() % 3000, whole.size - at);
      torn[worker].push_back({whole.data + at, size});
      at += size;
    }
    part.views[worker].slices = torn[worker];
  }
  input.divisor = 3;

  ASSERT_OK(Optimizer(Config(OptimizerConfig::Kind::kMomentum)).Apply(input));

  for (size_t i = 0; i < kCount; ++i) {
    float slot = part.slot0[i];
    ASSERT_EQ(part.new_value[i], PlainMomentum(part.gradients, i, 1, slot));
    ASSERT_EQ(part.new_slot0[i], slot);
  }
}

TEST(OptimizerTest, BFloat16GradientIsAppliedAsTheFloatsThatItStandsFor) {
  const std::vector<uint16_t> packed = {0x3f80, 0xc020, 0x0001};
  const ByteSlice slice = {reinterpret_cast<const std::byte*>(packed.data()),
                           6};
  const GradientSlices gradient = {{&slice, 1}, GradientType::kBFloat16};
  const Optimizer optimizer(Config(OptimizerConfig::Kind::kAdam));
  Part<float> part(3);
  part.AddGradient({1.0f, -2.5f, 0x1p-133f});
  ASSERT_OK(optimizer.Apply(part.Input()));
  const std::vector<float> expected = part.new_value;
  ApplyInput input = part.Input();
  input.gradients = {&gradient, 1};
  part.new_value.assign(3, 0);

  ASSERT_OK(optimizer.Apply(input));

  EXPECT_EQ(part.new_value, expected);
}

TEST(OptimizerTest, NonFiniteGradientsAreAppliedLikeOthers) {
  const Optimizer optimizer(Config(OptimizerConfig::Kind::kGradientDescent));
  Part<float> part(2);
  part.AddGradient({std::numeric_limits<float>::quiet_NaN(),
                    std::numeric_limits<float>::infinity()});

  ASSERT_OK(optimizer.Apply(part.Input()));

  EXPECT_TRUE(std::isnan(part.new_value[0]));
  EXPECT_EQ(part.new_value[1], -std::numeric_limits<float>::infinity());
}

class RefusedInputTest : public ::testing::Test {
 protected:
  RefusedInputTest() : part_(4) { part_.AddGradient({1, 1, 1, 1}); }
  ~RefusedInputTest() override {
    EXPECT_THAT(part_.new_value, ElementsAre(0, 0, 0, 0));
  }

  void ExpectInvalid(const ApplyInput& input, const char* message) {
    const Optimizer optimizer(Config(OptimizerConfig::Kind::kAdam));
    EXPECT_THAT(
        optimizer.Apply(input),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }

  Part<float> part_;
};

TEST_F(RefusedInputTest, NoGradient) {
  ApplyInput input = part_.Input();
  input.gradients = {};
  ExpectInvalid(input, "0 gradients");
}

TEST_F(RefusedInputTest, ZeroDivisor) {
  ApplyInput input = part_.Input();
  input.divisor = 0;
  ExpectInvalid(input, "divisor 0");
}

TEST_F(RefusedInputTest, GradientOfAnotherLength) {
  part_.AddGradient({1, 1, 1});
  ExpectInvalid(part_.Input(),
                "gradient 1 has 12 bytes; as VARIABLE the part has 16");
}

TEST_F(RefusedInputTest, BFloat16OfAnotherLength) {
  ApplyInput input = part_.Input();
  part_.views[0].type = GradientType::kBFloat16;
  ExpectInvalid(input, "gradient 0 has 16 bytes; as BFLOAT16 the part has 8");
}

TEST_F(RefusedInputTest, TypeThatDoesNotExist) {
  ApplyInput input = part_.Input();
  part_.views[0].type = static_cast<GradientType>(7);
  ExpectInvalid(input, "gradient type invalid");
}

TEST(OptimizerTest, BFloat16GradientOfDoublesIsRefused) {
  Part<double> part(1);
  part.AddGradient({1});
  ApplyInput input = part.Input();
  part.views[0].type = GradientType::kBFloat16;

  EXPECT_THAT(Optimizer(OptimizerConfig{}).Apply(input),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("BFLOAT16 is not for a float64 variable")));
  EXPECT_THAT(part.new_value, ElementsAre(0));
}

TEST_F(RefusedInputTest, NewValueOfAnotherLength) {
  ApplyInput input = part_.Input();
  input.new_value.remove_suffix(4);
  ExpectInvalid(input, "value has 16 bytes before and 12 after");
}

TEST_F(RefusedInputTest, MissingSlot) {
  ApplyInput input = part_.Input();
  input.new_slots[1] = {};
  ExpectInvalid(input, "slot 1 has 16 bytes before and 0 after");
}

TEST_F(RefusedInputTest, PartialElement) {
  ApplyInput input = part_.Input();
  input.old_value.remove_suffix(1);
  ExpectInvalid(input, "positive multiple of 4");
}

TEST_F(RefusedInputTest, EmptyValue) {
  ApplyInput input = part_.Input();
  input.old_value = {};
  ExpectInvalid(input, "value has 0 bytes");
}

TEST_F(RefusedInputTest, MisalignedSlot) {
  std::vector<std::byte> raw(20);
  ApplyInput input = part_.Input();
  input.new_slots[0] = absl::MakeSpan(raw).subspan(1, 16);
  ExpectInvalid(input, "slot 0 must start at a multiple of 4");
}

TEST_F(RefusedInputTest, PartialOverlap) {
  std::vector<float> shared(5);
  ApplyInput input = part_.Input();
  input.old_value = Bytes(shared).subspan(0, 16);
  input.new_value = Bytes(shared).subspan(4, 16);
  ExpectInvalid(input, "not overlap in part");
}

TEST(OptimizerTest, Float16RoundsEveryOperation) {
  std::vector<Float16> value = {ToFloat16(1.0f), ToFloat16(2.0f)};
  std::vector<Float16> gradient = {ToFloat16(0.1f), ToFloat16(0.1f)};
  const ByteSlice slice{Bytes(gradient).data(), Bytes(gradient).size()};
  const GradientSlices slices{{&slice, 1}};
  ApplyInput input;
  input.dtype = DType::kFloat16;
  input.learning_rate = 3;
  input.gradients = {&slices, 1};
  input.old_value = input.new_value = Bytes(value);

  ASSERT_OK(Optimizer(OptimizerConfig{}).Apply(input));

  const Float16 change = gradient[0] * ToFloat16(3.0f);
  EXPECT_EQ(value[0].bits, (ToFloat16(1.0f) - change).bits);
  EXPECT_EQ(value[1].bits, (ToFloat16(2.0f) - change).bits);
}

// Slots and values of a bfloat16 variable follow the rule of float32, rounded.
TEST(OptimizerTest, BFloat16VariableFollowsTheRuleOfFloat32Rounded) {
  using Kind = OptimizerConfig::Kind;
  constexpr size_t kCount = kBlockElements + 77;
  const auto half = [](const std::vector<float>& floats) {
    std::vector<uint16_t> bits(floats.size());
    for (size_t i = 0; i < bits.size(); ++i)
      bits[i] = ToBFloat16(floats[i]).bits;
    return bits;
  };
  std::mt19937 random(1);
  const auto draw = [&] {
    std::vector<float> floats(kCount);
    for (float& each : floats) {
      each = ToFloat(ToBFloat16(0.001f * static_cast<float>(random() % 2000)));
    }
    return floats;
  };
  for (const Kind kind :
       {Kind::kGradientDescent, Kind::kMomentum, Kind::kAdam, Kind::kAdagrad,
        Kind::kRmsProp, Kind::kAdadelta, Kind::kFtrl, Kind::kSgd,
        Kind::kAdamTorch, Kind::kAdamW}) {
    Part<float> floats(kCount);
    floats.value = draw();
    floats.slot0 = draw();
    floats.slot1 = draw();
    floats.gradients = {draw(), draw()};
    Part<uint16_t> halves(kCount);
    halves.value = half(floats.value);
    halves.slot0 = half(floats.slot0);
    halves.slot1 = half(floats.slot1);
    for (const auto& each : floats.gradients) {
      halves.AddGradient(half(each));
    }
    ApplyInput float_input = floats.Input();
    ApplyInput half_input = halves.Input();
    half_input.dtype = DType::kBFloat16;
    float_input.divisor = half_input.divisor = 2;

    ASSERT_OK(Optimizer(Config(kind)).Apply(float_input));
    ASSERT_OK(Optimizer(Config(kind)).Apply(half_input));

    const size_t slots = NumSlots(Config(kind));
    EXPECT_EQ(halves.new_value, half(floats.new_value));
    if (slots > 0) {
      EXPECT_EQ(halves.new_slot0, half(floats.new_slot0));
    }
    if (slots > 1) {
      EXPECT_EQ(halves.new_slot1, half(floats.new_slot1));
    }
  }
}

template <typename T>
void ExpectNonFiniteMeanIsTold() {
  const Optimizer optimizer(Config(OptimizerConfig::Kind::kMomentum));
  const size_t count = 2 * kBlockElements + 100;
  for (size_t at : {size_t{0}, kBlockElements - 1, kBlockElements, count - 1}) {
    Part<T> part(count);
    part.AddGradient(std::vector<T>(count, 1));
    part.AddGradient(std::vector<T>(count, 2));
    ApplyInput input = part.Input();
    input.divisor = 2;
    bool finite = false;
    input.mean_is_finite = &finite;
    ASSERT_OK(optimizer.Apply(input));
    EXPECT_TRUE(finite);

    part.gradients[1][at] = std::numeric_limits<T>::quiet_NaN();
    ASSERT_OK(optimizer.Apply(input));
    EXPECT_FALSE(finite) << at;

    part.gradients[0][at] = std::numeric_limits<T>::infinity();
    part.gradients[1][at] = -std::numeric_limits<T>::infinity();
    ASSERT_OK(optimizer.Apply(input));
    EXPECT_FALSE(finite) << at;
  }
}

TEST(OptimizerTest, MeanThatIsNotFiniteIsTold) {
  ExpectNonFiniteMeanIsTold<float>();
  ExpectNonFiniteMeanIsTold<double>();
}

TEST(OptimizerTest, MeanOfBFloat16sThatIsNotFiniteIsTold) {
  const Optimizer optimizer(Config(OptimizerConfig::Kind::kGradientDescent));
  Part<float> part(2);
  part.AddGradient({1, 2});
  ApplyInput input = part.Input();
  uint16_t packed[] = {0x3f80, 0x3f80};
  const ByteSlice slice = {reinterpret_cast<const std::byte*>(packed), 4};
  const GradientSlices gradient = {{&slice, 1}, GradientType::kBFloat16};
  input.gradients = {&gradient, 1};
  bool finite = false;
  input.mean_is_finite = &finite;
  ASSERT_OK(optimizer.Apply(input));
  EXPECT_TRUE(finite);

  packed[1] = 0x7f80;
  ASSERT_OK(optimizer.Apply(input));
  EXPECT_FALSE(finite);
}

}  // namespace
}  // namespace lockstep::server
