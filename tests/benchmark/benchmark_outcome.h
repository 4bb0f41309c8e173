#ifndef LOCKSTEP_TESTS_BENCHMARK_BENCHMARK_OUTCOME_H_
#define LOCKSTEP_TESTS_BENCHMARK_BENCHMARK_OUTCOME_H_

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/child_process.h"
#include "tests/testing/process_cluster.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::benchmark {

// The output and the end of a benchmark program.
struct Outcome {
  cli::TaskExit exit;
  std::string text;  // standard output and error
};

inline Outcome RunBenchmark(const std::string& program,
                            const std::vector<std::string>& args) {
  const lockstep::testing::TempDir directory;
  lockstep::testing::ChildProcess::Options options;
  options.program = lockstep::testing::ProgramPath(program);
  options.args = args;
  options.log_path = directory.Join("log");
  absl::StatusOr<cli::TaskExit> exit =
      lockstep::testing::RunProgram(options, absl::Seconds(150));
  EXPECT_THAT(exit.status(), lockstep::testing::IsOk());
  std::ifstream log(options.log_path);
  std::string text((std::istreambuf_iterator<char>(log)), {});
  return {exit.value_or(cli::TaskExit{}), std::move(text)};
}

inline std::vector<nlohmann::json> JsonLines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    nlohmann::json value = nlohmann::json::parse(line, nullptr, false);
    if (value.is_object()) lines.push_back(std::move(value));
  }
  return lines;
}

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_BENCHMARK_OUTCOME_H_
