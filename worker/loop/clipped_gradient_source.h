#ifndef LOCKSTEP_WORKER_LOOP_CLIPPED_GRADIENT_SOURCE_H_
#define LOCKSTEP_WORKER_LOOP_CLIPPED_GRADIENT_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "common/numeric/dtype.h"
#include "worker/loop/gradient_source.h"

namespace lockstep {

// ClippedGradientSource limits the gradients of another source before anybody
// hears of them. The global norm needs all of them, so that nothing is sent
// before the last one has been computed; the other ways take each by itself.
//
// Borrows: the source, and the memory that it writes gradients to.
class ClippedGradientSource final : public GradientSource {
 public:
  // By variable, elements of one type; of tables those of the pass's rows.
  using Gradients = std::vector<absl::Span<std::byte>>;

  // `gradients` says where they are, once a pass has been prepared.
  ClippedGradientSource(const ClippingConfig& config, DType dtype,
                        std::function<Gradients()> gradients,
                        GradientSource& source)
      : config_(config),
        dtype_(dtype),
        gradients_(std::move(gradients)),
        source_(source) {}

  absl::Status Prepare(int64_t index) override {
    return source_.Prepare(index);
  }
  bool WaitsForValues() const override { return source_.WaitsForValues(); }
  absl::StatusOr<GradientResult> Compute(int64_t index,
                                         const PassHooks& hooks) override;

 private:
  absl::StatusOr<GradientResult> ComputeTogether(int64_t index,
                                                 const PassHooks& hooks);
  void Clip(size_t variable) const;

  const ClippingConfig config_;
  const DType dtype_;
  const std::function<Gradients()> gradients_;
  GradientSource& source_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_LOOP_CLIPPED_GRADIENT_SOURCE_H_
