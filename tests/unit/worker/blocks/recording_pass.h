#ifndef LOCKSTEP_TESTS_UNIT_WORKER_BLOCKS_RECORDING_PASS_H_
#define LOCKSTEP_TESTS_UNIT_WORKER_BLOCKS_RECORDING_PASS_H_

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/loop/gradient_pass.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// RecordingPass is a pass that keeps its reports.
class RecordingPass final : public GradientPass {
 public:
  void GradientReady(size_t variable) override {
    reports.push_back(absl::StrCat("ready ", variable));
  }
  void GradientAbsent(size_t variable) override {
    reports.push_back(absl::StrCat("absent ", variable));
  }
  absl::Status PullNextBatch() override {
    ++pulls;
    return absl::OkStatus();
  }
  absl::Status CheckWanted() override {
    return wanted ? absl::OkStatus() : absl::AbortedError("dropped");
  }

  std::vector<std::string> reports;
  int pulls = 0;
  bool wanted = true;
};

// Writes the gradient of a variable of one float.
inline void StoreGradient(ParameterMemory& memory, size_t variable,
                          float gradient) {
  std::memcpy(memory.gradient(variable).data(), &gradient, sizeof(gradient));
}

// Returns the gradients of the first two variables, of one float each.
inline std::vector<float> TwoGradients(const ParameterMemory& memory) {
  std::vector<float> gradients(2);
  for (size_t v = 0; v < 2; ++v) {
    std::memcpy(&gradients[v], memory.gradient(v).data(), sizeof(float));
  }
  return gradients;
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_TESTS_UNIT_WORKER_BLOCKS_RECORDING_PASS_H_
