#include "worker/local/local_steps_source.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

// The pass of one local step: all values are in memory, and no gradient is
// sent.
class LocalStepsSource::LocalPass final : public GradientPass {
 public:
  LocalPass(GradientClipper& clipper, GradientPass& outer)
      : clipper_(clipper), outer_(outer) {}

  absl::Status CheckWanted() override { return outer_.CheckWanted(); }
  void GradientReady(size_t variable) override {
    clipper_.Ready(variable, [](size_t, bool) {});
  }

 private:
  GradientClipper& clipper_;
  GradientPass& outer_;
};

LocalStepsSource::LocalStepsSource(std::unique_ptr<GradientSource> source,
                                   std::unique_ptr<LocalVariables> variables,
                                   const ParameterMemory& shared,
                                   int64_t local_steps,
                                   const ClippingConfig& clipping,
                                   DType clipped)
    : variables_(std::move(variables)),
      source_(std::move(source)),
      shared_(shared),
      steps_(local_steps),
      num_variables_(variables_->ClippedGradients().size()),
      clipper_(clipping, clipped,
               [this] { return variables_->ClippedGradients(); }) {}

absl::Status LocalStepsSource::Prepare(const PassId& pass, int64_t index) {
  // The largest number whose local numbers, up to number * steps_ + steps_ - 1,
  // do not overflow. The token comes from another process.
  const int64_t limit = std::numeric_limits<int64_t>::max() / steps_ - 1;
  for (const auto& [name, number] :
       {std::pair{"step", pass.step}, {"batch", index}}) {
    if (number <= limit) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the pass is of ", name, " ", number,
                     ", but with local_steps ", steps_, " it must be at most ",
                     limit, ": start a ps_server of this program's version"));
  }
  global_step_ = pass.step;
  return absl::OkStatus();
}

absl::Status LocalStepsSource::MakeStep(int64_t batch, GradientPass& pass) {
  LocalPass local(clipper_, pass);
  clipper_.BeginPass();
  LOCKSTEP_RETURN_IF_ERROR(source_->Begin(batch, local));
  LOCKSTEP_ASSIGN_OR_RETURN(const GradientResult one, source_->Finish(local));
  clipper_.EndPass([](size_t, bool) {});
  result_.loss += one.loss / static_cast<double>(steps_);
  result_.examples += one.examples;
  result_.non_finite += one.non_finite;
  return variables_->Step();
}

absl::Status LocalStepsSource::Begin(int64_t index, GradientPass& pass) {
  // All values at once: the first local step changes a copy of them.
  LOCKSTEP_RETURN_IF_ERROR(pass.NeedValues(0, num_variables_));
  variables_->Start(shared_, global_step_);
  result_ = {};
  for (int64_t i = 0; i < steps_; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(pass.CheckWanted());
    LOCKSTEP_RETURN_IF_ERROR(MakeStep(index * steps_ + i, pass));
  }
  return absl::OkStatus();
}

absl::StatusOr<GradientResult> LocalStepsSource::Finish(GradientPass& pass) {
  // The last first, as other sources report: all workers of a step must send in
  // one order.
  for (size_t v = num_variables_; v-- > 0;) {
    LOCKSTEP_RETURN_IF_ERROR(pass.CheckWanted());
    variables_->WriteDifference(v, shared_);
    pass.GradientReady(v);
  }
  return result_;
}

}  // namespace lockstep::worker
