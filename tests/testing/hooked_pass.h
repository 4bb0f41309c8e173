#ifndef LOCKSTEP_TESTS_TESTING_HOOKED_PASS_H_
#define LOCKSTEP_TESTS_TESTING_HOOKED_PASS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/loop/gradient_source.h"

namespace lockstep::testing {

// What a test does in a pass; each may be empty.
struct PassHooks {
  std::function<void(size_t variable)> on_gradient = nullptr;
  std::function<bool()> unwanted = nullptr;
  // If set, values arrive while the pass is computed.
  std::function<absl::Status(size_t first, size_t count)> need_values = nullptr;
};

// A pass that calls hooks.
class HookedPass final : public worker::GradientPass {
 public:
  explicit HookedPass(PassHooks hooks = {}) : hooks_(std::move(hooks)) {}

  bool HasAllValues() const override { return !hooks_.need_values; }
  absl::Status NeedValues(size_t first, size_t count) override {
    LOCKSTEP_RETURN_IF_ERROR(CheckWanted());
    return hooks_.need_values ? hooks_.need_values(first, count)
                              : absl::OkStatus();
  }
  absl::Status CheckWanted() override {
    if (!hooks_.unwanted || !hooks_.unwanted()) return absl::OkStatus();
    return absl::AbortedError("not wanted");
  }
  void GradientReady(size_t variable) override {
    if (hooks_.on_gradient) hooks_.on_gradient(variable);
  }

 private:
  const PassHooks hooks_;
};

// Both halves of a pass.
inline absl::StatusOr<worker::GradientResult> ComputePass(
    worker::GradientSource& source, int64_t index,
    const PassHooks& hooks = {}) {
  HookedPass pass(hooks);
  LOCKSTEP_RETURN_IF_ERROR(source.Begin(index, pass));
  return source.Finish(pass);
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_HOOKED_PASS_H_
