#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/replay.h"
#include "tests/golden/trace.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::golden {
namespace {

using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::vector<std::byte> Values(DType dtype, const std::string& data) {
  const Json numbers = Json::parse(data);
  return ReadTensor(dtype, {{"shape", {numbers.size()}}, {"data", numbers}})
      .values;
}

std::string Written(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

TEST(GoldenTraceTest, EveryBitMattersButThoseOfNotANumber) {
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const auto zero = Values(dtype, "[1.5, 0.0]");
    EXPECT_TRUE(Same(dtype, zero, Values(dtype, "[1.5, 0.0]"), Zeros::kDiffer));
    EXPECT_FALSE(
        Same(dtype, zero, Values(dtype, "[1.5, -0.0]"), Zeros::kDiffer));
    EXPECT_TRUE(Same(dtype, zero, Values(dtype, "[1.5, -0.0]"), Zeros::kEqual));
    EXPECT_FALSE(
        Same(dtype, zero, Values(dtype, "[1.501, 0.0]"), Zeros::kEqual));
    EXPECT_FALSE(Same(dtype, zero, Values(dtype, "[1.5]"), Zeros::kEqual));
    const auto special = Values(dtype, R"(["nan", "inf", "-inf"])");
    auto other_nan = special;
    other_nan[0] |= std::byte{1};
    EXPECT_TRUE(Same(dtype, special, other_nan, Zeros::kDiffer));
    EXPECT_FALSE(Same(dtype, special, Values(dtype, R"(["nan", "inf", "inf"])"),
                      Zeros::kEqual));
  }
}

TEST(GoldenTraceTest, SmallestNumbersAreReadExactly) {
  EXPECT_EQ(ToDoubles(DType::kFloat32, Values(DType::kFloat32, "[1e-45]"))[0],
            0x1p-149);
  EXPECT_EQ(ToDoubles(DType::kFloat64, Values(DType::kFloat64, "[5e-324]"))[0],
            0x1p-1074);
}

TEST(GoldenTraceTest, DistanceIsInUnitsInTheLastPlaceOfTheScale) {
  const double ulp = 0x1p-23;
  EXPECT_TRUE(Near(DType::kFloat32, {1}, {1 + 2 * ulp}, {1}, 2));
  EXPECT_FALSE(Near(DType::kFloat32, {1}, {1 + 3 * ulp}, {1}, 2));
  EXPECT_TRUE(Near(DType::kFloat32, {1}, {1 + 3 * ulp}, {2}, 2));
  EXPECT_FALSE(Near(DType::kFloat32, {1}, {1 + ulp}, {1}, 0));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(Near(DType::kFloat32, {infinity}, {1}, {infinity}, 2));
}

TEST(GoldenTraceTest, ReadsOneScenarioPerLine) {
  const TempDir directory;
  const std::string line = R"({"format":1,"file":"f","name":"n"})";
  EXPECT_THAT(
      ReadScenarios(Written(directory.Join("two.jsonl"), line + "\n\n" + line))
          .value(),
      SizeIs(2));
}

TEST(GoldenTraceTest, InvalidTraceIsRefusedWithItsLine) {
  const TempDir directory;
  EXPECT_THAT(ReadScenarios(directory.Join("no/such/file")),
              StatusIs(absl::StatusCode::kNotFound));
  for (const char* text : {"\n{", "\n[]", "\n{}", "\n1",
                           "\n{\"format\":2,\"file\":\"f\",\"name\":\"n\"}",
                           "\n{\"format\":1,\"file\":1,\"name\":\"n\"}"}) {
    EXPECT_THAT(ReadScenarios(Written(directory.Join("bad.jsonl"), text)),
                StatusIs(kInvalid, HasSubstr("bad.jsonl:2: ")))
        << text;
  }
  EXPECT_THAT(ReadScenarios(Written(directory.Join("empty.jsonl"), "")),
              StatusIs(kInvalid));
}

// Takes out or changes every value of every kind of scenario, one at a time:
// all that may come of it is an error or a difference.
void Damage(const Json& scenario, Json& place) {
  static const auto& kOthers =
      *new std::vector<Json>{nullptr,
                             -1,
                             1e300,
                             "x",
                             Json::array(),
                             Json::object(),
                             9223372036854775807,
                             std::vector<int>(9, 1 << 30)};
  const Json saved = place;
  for (const Json& other : kOthers) {
    place = other;
    ReplayScenario(scenario).status().IgnoreError();
  }
  place = saved;
  if (place.is_object()) {
    for (const auto& [key, value] : saved.items()) {
      place.erase(key);
      ReplayScenario(scenario).status().IgnoreError();
      place[key] = value;
    }
  }
  if (!place.is_structured()) return;
  size_t visited = 0;
  for (Json& child : place) {
    if (place.is_array() && ++visited > 2) break;
    Damage(scenario, child);
  }
}

class DamagedTraceTest : public ::testing::TestWithParam<const char*> {};

TEST_P(DamagedTraceTest, IsAnErrorOrADifferenceAndNeverACrash) {
  auto scenarios = ReadScenarios(std::string(LOCKSTEP_GOLDEN_DIR) + "/" +
                                 GetParam() + ".jsonl");
  ASSERT_OK(scenarios);
  for (size_t i = 0; i < scenarios->size(); i += scenarios->size() / 4) {
    Json& scenario = (*scenarios)[i].json;
    ASSERT_OK(ReplayScenario(scenario));
    Damage(scenario, scenario);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DamagedTraceTest,
                         ::testing::Values("clip", "dense_accumulator",
                                           "moving_average", "optimizer",
                                           "partition", "placement",
                                           "sparse_accumulator", "sync_loop",
                                           "token_queue"),
                         [](const auto& info) { return info.param; });

TEST_P(DamagedTraceTest, TheEndOfEveryScenarioIsCompared) {
  auto scenarios = ReadScenarios(std::string(LOCKSTEP_GOLDEN_DIR) + "/" +
                                 GetParam() + ".jsonl");
  ASSERT_OK(scenarios);
  int compared = 0;
  for (const Scenario& scenario : *scenarios) {
    // What a failed step leaves behind is not compared.
    const Json steps = scenario.json.value("steps", Json::array());
    if (!steps.empty() && steps.back().at("status") != "OK") continue;
    std::string text = scenario.json.dump();
    const size_t status = text.rfind(R"("status":"OK")");
    const size_t count = text.rfind(R"("global_step":)");
    if (count != std::string::npos) {
      text.insert(count + 14, "9");
    } else if (status != std::string::npos) {
      text.replace(status, 13, R"("status":"UNKNOWN")");
    } else {
      continue;
    }
    const auto outcome = ReplayScenario(Json::parse(text));
    if (!outcome.ok()) continue;
    EXPECT_FALSE(outcome->differences.empty()) << scenario.line;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

// A kind of scenario, and the fields that hold its recorded results.
struct Recorded {
  std::string kind;
  std::set<std::string> fields;
};

// Appends the first number of each list in a result, and each number that is in
// no list. A tensor's shape is left out.
void AddNumbers(Json& result, std::vector<Json*>& numbers) {
  if (result.is_number() || result.is_string()) {
    numbers.push_back(&result);
  } else if (result.is_object() && result.contains("data")) {
    AddNumbers(result["data"], numbers);
  } else if (result.is_object() && result.contains("values")) {
    AddNumbers(result["values"], numbers);
  } else if (result.is_array() && !result.empty() && result[0].is_primitive() &&
             !result[0].is_null()) {
    AddNumbers(result[0], numbers);
  } else if (result.is_structured()) {
    for (Json& part : result) AddNumbers(part, numbers);
  }
}

// Appends numbers of all results in a part of a scenario. The state after an
// operation that failed is not compared, and is left out.
void AddResults(Json& part, const std::set<std::string>& fields,
                std::vector<Json*>& numbers) {
  if (part.is_array()) {
    for (Json& child : part) AddResults(child, fields, numbers);
  }
  if (!part.is_object()) return;
  if (part.value("status", std::string("OK")) != "OK") return;
  // PyTorch leaves a parameter without a gradient out.
  if (part.contains("gradient") && part["gradient"].is_null()) return;
  const bool enqueues = part.value("op", std::string()) == "enqueue";
  for (const auto& item : part.items()) {
    if (enqueues && item.key() == "value") continue;
    if (fields.count(item.key()) > 0) {
      AddNumbers(item.value(), numbers);
    } else {
      AddResults(item.value(), fields, numbers);
    }
  }
}

// Another number, which is near to none: of tensors NaN.
Json Changed(const Json& number) {
  if (number.is_number_float() || (number.is_string() && number != "nan")) {
    return "nan";
  }
  return 12345;
}

class ComparedTraceTest : public ::testing::TestWithParam<Recorded> {};

// A replay that compares nothing would pass everything. One number at a time,
// and at most 30 of a scenario.
TEST_P(ComparedTraceTest, EveryResultIsCompared) {
  auto scenarios = ReadScenarios(std::string(LOCKSTEP_GOLDEN_DIR) + "/" +
                                 GetParam().kind + ".jsonl");
  ASSERT_OK(scenarios);
  int noticed = 0;
  for (Scenario& scenario : *scenarios) {
    std::vector<Json*> numbers;
    AddResults(scenario.json, GetParam().fields, numbers);
    for (size_t i = 0; i < numbers.size(); i += 1 + numbers.size() / 30) {
      const Json saved = *numbers[i];
      *numbers[i] = Changed(saved);
      const auto outcome = ReplayScenario(scenario.json);
      *numbers[i] = saved;
      ASSERT_OK(outcome);
      ASSERT_FALSE(outcome->differences.empty())
          << scenario.line << ", number " << i << ": " << saved;
      ++noticed;
    }
  }
  EXPECT_GT(noticed, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ComparedTraceTest,
    ::testing::Values(Recorded{"clip", {"results"}},
                      Recorded{"dense_accumulator", {"result"}},
                      Recorded{"moving_average", {"initial_state", "after"}},
                      Recorded{"optimizer", {"initial_slots", "after"}},
                      Recorded{"partition", {"partitions", "offset", "length"}},
                      Recorded{"placement", {"task"}},
                      Recorded{"sparse_accumulator", {"result"}},
                      Recorded{"sync_loop", {"state"}},
                      Recorded{"token_queue", {"value"}},
                      Recorded{"torch_optimizer", {"value", "slots"}}),
    [](const auto& info) { return info.param.kind; });

// Changes the first number of a recorded result. False if there is none.
bool ChangeNumber(Json& result) {
  if (!result.is_structured()) return false;
  if (result.is_object() && result.contains("data") &&
      !result["data"].empty()) {
    result["data"][0] = 12345;
    return true;
  }
  for (Json& part : result) {
    if (ChangeNumber(part)) return true;
  }
  return false;
}

class StrategyTraceTest : public ::testing::TestWithParam<const char*> {};

// One operation at a time, in every eleventh scenario.
TEST_P(StrategyTraceTest, EveryResultIsComparedUnlessItIsLeftOut) {
  const auto scenarios = ReadScenarios(std::string(LOCKSTEP_GOLDEN_DIR) + "/" +
                                       GetParam() + ".jsonl");
  ASSERT_OK(scenarios);
  int noticed = 0;
  for (size_t i = 0; i < scenarios->size(); i += 11) {
    const Json& scenario = (*scenarios)[i].json;
    const auto undamaged = ReplayScenario(scenario);
    ASSERT_OK(undamaged);
    int left_out = 0;
    for (const auto& [reason, count] : undamaged->left_out) left_out += count;
    for (size_t op = 0; op < scenario.at("ops").size(); ++op) {
      Json changed = scenario;
      Json& operation = changed["ops"][op];
      if (!operation.contains("result")) continue;
      if (!ChangeNumber(operation["result"])) continue;
      const auto outcome = ReplayScenario(changed);
      ASSERT_OK(outcome);
      const bool found = !outcome->differences.empty();
      found ? ++noticed : --left_out;
      EXPECT_GE(left_out, 0) << (*scenarios)[i].line << ", operation " << op;
    }
  }
  EXPECT_GT(noticed, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, StrategyTraceTest,
                         ::testing::Values("run_steps", "strategy_input",
                                           "strategy_training",
                                           "strategy_values",
                                           "strategy_variables"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lockstep::golden
