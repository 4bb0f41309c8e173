// Replays traces that were recorded from TensorFlow through the classes of the
// product:
//
//   lockstep_replay FILE.jsonl...
//
// Prints each difference, then how many operations it leaves out and why, and
// ends with "N passed, M failed". Exit code: 0 if
// none failed, 1 if some did, 2 for a file that cannot be replayed.

#include <cstdio>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/golden/replay.h"

namespace {

using lockstep::golden::Difference;
using lockstep::golden::Outcome;
using lockstep::golden::Scenario;

struct Counts {
  int passed = 0;
  int failed = 0;
  bool malformed = false;
  std::map<std::string, int> left_out;  // operations, by reason
};

constexpr absl::string_view kHelp =
    "usage: lockstep_replay FILE.jsonl...\n"
    "\n"
    "Replays traces recorded from TensorFlow through Lockstep's own classes\n"
    "and prints what differs: scenario, operation, expected and got.\n"
    "\n"
    "exit codes: 0 nothing differs, 1 something does, 2 bad flags or files\n";

void Print(const std::string& path, const Scenario& scenario,
           const Difference& difference) {
  std::printf("%s:%d: %s: %s\n  expected %s\n  got      %s\n", path.c_str(),
              scenario.line,
              scenario.json.at("name").get<std::string>().c_str(),
              difference.operation.c_str(), difference.expected.c_str(),
              difference.got.c_str());
}

void Replay(const std::string& path, const Scenario& scenario, Counts& counts) {
  const absl::StatusOr<Outcome> outcome =
      lockstep::golden::ReplayScenario(scenario.json);
  if (!outcome.ok()) {
    std::fprintf(stderr, "%s:%d: %s\n", path.c_str(), scenario.line,
                 std::string(outcome.status().message()).c_str());
    counts.malformed = true;
    return;
  }
  for (const Difference& difference : outcome->differences) {
    Print(path, scenario, difference);
  }
  for (const auto& [reason, count] : outcome->left_out) {
    counts.left_out[reason] += count;
  }
  ++(outcome->differences.empty() ? counts.passed : counts.failed);
}

void ReplayFile(const std::string& path, Counts& counts) {
  const auto scenarios = lockstep::golden::ReadScenarios(path);
  if (!scenarios.ok()) {
    std::fprintf(stderr, "%s\n",
                 std::string(scenarios.status().message()).c_str());
    counts.malformed = true;
    return;
  }
  for (const Scenario& scenario : *scenarios) Replay(path, scenario, counts);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && (std::string(argv[1]) == "--help")) {
    std::fputs(kHelp.data(), stdout);
    return 0;
  }
  if (argc < 2 || argv[1][0] == '-') {
    std::fputs(kHelp.data(), stderr);
    return 2;
  }
  Counts counts;
  for (int i = 1; i < argc; ++i) ReplayFile(argv[i], counts);
  for (const auto& [reason, count] : counts.left_out) {
    std::printf("left out: %d operations: %s\n", count, reason.c_str());
  }
  std::printf("%d passed, %d failed\n", counts.passed, counts.failed);
  if (counts.malformed) return 2;
  return counts.failed == 0 ? 0 : 1;
}
