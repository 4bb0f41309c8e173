#ifndef LOCKSTEP_TESTS_GOLDEN_TRACE_UPDATER_H_
#define LOCKSTEP_TESTS_GOLDEN_TRACE_UPDATER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "server/step/engine.h"
#include "tests/golden/variable_state.h"

namespace lockstep::golden {

// TraceUpdater holds the variables of a small job in plain memory and updates
// them with the product's optimizers and moving averages. Each variable with a
// gradient is one part.
//
// Threads: not thread-safe; a replay executes one operation at a time.
class TraceUpdater final : public server::PartUpdater {
 public:
  struct Variable {
    VariableState state;
    bool sparse = false;
    std::vector<std::byte> average;  // empty without moving averages
  };

  // `part_variables`: the index of the variable, by part.
  TraceUpdater(StepSettings settings, std::optional<double> average_decay,
               std::vector<Variable> variables,
               std::vector<int> part_variables);

  const std::vector<Variable>& variables() const { return variables_; }
  const StepSettings& settings() const { return settings_; }

  int num_parts() const override {
    return static_cast<int>(part_variables_.size());
  }
  size_t part_size(int part) const override;
  absl::StatusOr<size_t> GradientSize(int part,
                                      GradientType type) const override;
  bool ClaimNext(int) override { return true; }
  server::LentBytes LendNext(int) override { return {}; }
  absl::StatusOr<bool> Update(
      int part, int64_t step,
      absl::Span<const server::PartGradient> gradients) override;
  absl::Status UpdateSparse(int part, int64_t step,
                            const server::SparseGradient& mean) override;
  absl::Status BeginSparse(int part) override;
  absl::Status CheckFinite(int, const server::PartGradient&) const override {
    return absl::OkStatus();
  }
  absl::Status MarkPrepared(int64_t, int64_t) override {
    return absl::OkStatus();
  }
  void DropPrepared() override {}
  // Adam's powers advance first, then the moving averages.
  absl::Status Commit(int64_t step) override;

 private:
  VariableState& StateOf(int part) {
    return variables_[part_variables_[part]].state;
  }

  StepSettings settings_;
  const std::optional<double> average_decay_;
  std::vector<Variable> variables_;
  const std::vector<int> part_variables_;
};

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_TRACE_UPDATER_H_
