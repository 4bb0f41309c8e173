#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/unit/worker/models/zoo/model_harness.h"
#include "worker/models/zoo/registry.h"

// Whole models against PyTorch: record.py has the same models and formulas.

namespace lockstep::testing {
namespace {

using nlohmann::json;

// For values around 1, through some twenty operations in double.
constexpr double kTolerance = 1e-12;

double Wave(size_t i, double frequency, double phase) {
  return 0.5 * std::sin(frequency * static_cast<double>(i) + phase);
}

std::vector<json> Recorded() {
  std::ifstream file(LOCKSTEP_RECORDED_GRADIENTS);
  return json::parse(file).at("models").get<std::vector<json>>();
}

worker::ModelInput InputOf(const json& recorded) {
  return {recorded.value("height", 1), recorded.value("width", 1),
          recorded.value("channels", 1), recorded.at("classes"),
          recorded.value("tokens", 0)};
}

ModelConfig ConfigOf(const json& recorded) {
  ModelConfig config;
  config.kind = recorded.at("kind");
  config.hidden_units = recorded.value("hidden_units", std::vector<int64_t>());
  config.conv_filters = recorded.value("conv_filters", std::vector<int64_t>());
  config.layers = recorded.value("layers", 0);
  config.heads = recorded.value("heads", 0);
  if (config.heads > 0) config.width = recorded.at("width");
  return config;
}

class RecordedGradientsTest : public ::testing::TestWithParam<json> {
 protected:
  RecordedGradientsTest()
      : harness_(*worker::MakeModel(ConfigOf(GetParam()), InputOf(GetParam()),
                                    worker::ElementType::kFloat64),
                 InputOf(GetParam()), GetParam().at("examples")) {
    for (size_t k = 0; k < harness_.values().size(); ++k) {
      std::vector<double>& values = harness_.values()[k];
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = Wave(i, 0.7, 1.3 * static_cast<double>(k) + 0.3);
      }
    }
    for (size_t i = 0; i < harness_.images().size(); ++i) {
      harness_.images()[i] = 0.5 + Wave(i, 0.9, 0.1);
    }
  }

  ModelHarness harness_;
};

TEST_P(RecordedGradientsTest, ModelComputesWhatPyTorchDoes) {
  const std::vector<std::string> names = GetParam().at("variables");
  const std::vector<VariableSpec>& variables = harness_.model().variables();
  ASSERT_EQ(variables.size(), names.size());

  EXPECT_NEAR(harness_.Pass(), GetParam().at("loss").get<double>(), kTolerance);

  for (size_t k = 0; k < names.size(); ++k) {
    ASSERT_EQ(variables[k].name, names[k]);
    const json& all = GetParam().at("gradients");
    if (!all.contains(names[k])) continue;  // moving statistics
    const std::vector<double> recorded = all.at(names[k]);
    ASSERT_EQ(harness_.gradients()[k].size(), recorded.size()) << names[k];
    for (size_t i = 0; i < recorded.size(); ++i) {
      EXPECT_NEAR(harness_.gradients()[k][i], recorded[i], kTolerance)
          << names[k] << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RecordedGradientsTest,
                         ::testing::ValuesIn(Recorded()),
                         [](const ::testing::TestParamInfo<json>& info) {
                           return info.param.at("kind").get<std::string>();
                         });

}  // namespace
}  // namespace lockstep::testing
