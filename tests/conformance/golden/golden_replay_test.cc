// Replays traces that were recorded from TensorFlow:
//
//   golden_replay_test FILE.jsonl...
//
// Each scenario is a test of its own, named after kind, scenario and seed.
#include <cctype>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/conformance/golden/golden_reader.h"
#include "tests/conformance/golden/replay.h"

namespace lockstep::golden {
namespace {

class ScenarioTest : public ::testing::Test {
 public:
  explicit ScenarioTest(std::function<void()> replay)
      : replay_(std::move(replay)) {}
  void TestBody() override { replay_(); }

 private:
  const std::function<void()> replay_;
};

std::string TestName(const Json& scenario) {
  std::string name = absl::StrCat(scenario.at("name").get<std::string>(),
                                  "_seed", scenario.at("seed").get<int64_t>());
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

void Register(const std::string& suite, const Json& scenario,
              std::function<void()> replay) {
  ::testing::RegisterTest(suite.c_str(), TestName(scenario).c_str(), nullptr,
                          nullptr, __FILE__, __LINE__,
                          [replay = std::move(replay)]() -> ::testing::Test* {
                            return new ScenarioTest(replay);
                          });
}

void RegisterSparse(const Json& scenario) {
  Register("sparse_accumulator", scenario, [scenario] {
    ReplaySparseAccumulator(scenario, SparseInput::kAsSent);
  });
  if (!scenario.at("canonical_input").get<bool>()) return;
  Register("sparse_accumulator_canonical", scenario, [scenario] {
    ReplaySparseAccumulator(scenario, SparseInput::kCanonical);
  });
}

absl::Status RegisterScenario(const Json& scenario) {
  const std::string kind = scenario.at("file");
  if (kind == "dense_accumulator") {
    Register(kind, scenario, [scenario] { ReplayDenseAccumulator(scenario); });
  } else if (kind == "sparse_accumulator") {
    RegisterSparse(scenario);
  } else if (kind == "token_queue") {
    Register(kind, scenario, [scenario] { ReplayTokenQueue(scenario); });
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("no replay for traces of kind \"", kind, "\""));
  }
  return absl::OkStatus();
}

// Fields of a wrong type make nlohmann throw.
absl::Status RegisterFile(const std::string& path) {
  absl::StatusOr<std::vector<Json>> scenarios = ReadScenarios(path);
  if (!scenarios.ok()) return scenarios.status();
  try {
    for (const Json& scenario : *scenarios) {
      absl::Status status = RegisterScenario(scenario);
      if (!status.ok()) return status;
    }
  } catch (const Json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", e.what()));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep::golden

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FILE.jsonl...\n", argv[0]);
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    const absl::Status status = lockstep::golden::RegisterFile(argv[i]);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
