#include "worker/model_gradient_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {

ModelGradientSource::ModelGradientSource(Model& model, const ModelInput& input,
                                         ComputeBackend& backend,
                                         BatchSource batches,
                                         const ParameterMemory& memory,
                                         const Options& options)
    : model_(model),
      backend_(backend),
      batches_(std::move(batches)),
      options_(options),
      device_(model.variables(), memory, backend),
      stage_(backend, input) {}

absl::Status ModelGradientSource::PrepareDevice(const Batch& batch) {
  if (batch.size % options_.micro_batches != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("micro_batches must divide the batch of ", batch.size,
                     " examples, got ", options_.micro_batches));
  }
  LOCKSTEP_RETURN_IF_ERROR(device_.StartUpload());
  if (options_.micro_batches == 1 || !parts_.empty()) return absl::OkStatus();
  part_memory_.resize(device_.gradients().size());
  std::vector<Tensor> parts;
  for (size_t i = 0; i < part_memory_.size(); ++i) {
    const Tensor& gradient = device_.gradients()[i];
    LOCKSTEP_ASSIGN_OR_RETURN(
        parts.emplace_back(),
        part_memory_[i].Reserve(backend_, gradient.type(), gradient.shape()));
  }
  parts_ = std::move(parts);
  return absl::OkStatus();
}

absl::Status ModelGradientSource::Send(size_t variable, Pass& pass) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int64_t count,
      backend_.CountNonFinite(device_.gradients()[variable]));
  pass.non_finite += count;
  if (count > 0 && options_.refuse_non_finite) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the gradient of ", model_.variables()[variable].name, " has ", count,
        " elements that are NaN or infinite, which refuse_non_finite forbids; "
        "make learning_rate smaller or set clipping"));
  }
  LOCKSTEP_RETURN_IF_ERROR(device_.StartDownload(variable));
  return device_.Arrived(
      /*wait=*/false, [&](size_t arrived) { pass.outer.Report(arrived); });
}

absl::Status ModelGradientSource::Add(size_t variable, Pass& pass) {
  if (!pass.status.ok()) return pass.status;
  if (!parts_.empty()) {
    const double share = 1 / static_cast<double>(options_.micro_batches);
    LOCKSTEP_RETURN_IF_ERROR(backend_.Combine(parts_[variable], share,
                                              pass.first ? 0 : 1,
                                              device_.gradients()[variable]));
  }
  return pass.last ? Send(variable, pass) : absl::OkStatus();
}

absl::StatusOr<double> ModelGradientSource::ComputePart(const Batch& batch,
                                                        int64_t index,
                                                        int64_t part,
                                                        Pass& pass) {
  const int64_t size = batch.size / options_.micro_batches;
  LOCKSTEP_ASSIGN_OR_RETURN(BatchView view,
                            stage_.View(batch, part * size, size));
  const auto number =
      static_cast<uint64_t>(index * options_.micro_batches + part);
  view.key = options_.key + number * 0x9e3779b97f4a7c15u;
  pass.first = part == 0;
  pass.last = part + 1 == options_.micro_batches;
  PassHooks hooks;
  hooks.on_gradient = [&](size_t variable) {
    pass.status = Add(variable, pass);
  };
  hooks.unwanted = [&] {
    return !pass.status.ok() || !pass.outer.CheckWanted().ok();
  };
  if (pass.first) {
    hooks.before_use = [this](size_t first, size_t count) {
      return device_.BeforeUse(first, count);
    };
  }
  absl::StatusOr<double> loss =
      model_.Gradients(backend_, view, device_.values(),
                       parts_.empty() ? device_.gradients() : parts_, hooks);
  LOCKSTEP_RETURN_IF_ERROR(pass.status);
  return loss;
}

absl::StatusOr<GradientResult> ModelGradientSource::Compute(
    int64_t index, const PassHooks& hooks) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Batch batch, batches_.Get(index));
  LOCKSTEP_RETURN_IF_ERROR(PrepareDevice(batch));
  Pass pass{.outer = hooks};
  double losses = 0;
  for (int64_t part = 0; part < options_.micro_batches; ++part) {
    LOCKSTEP_ASSIGN_OR_RETURN(const double loss,
                              ComputePart(batch, index, part, pass));
    losses += loss;
  }
  LOCKSTEP_RETURN_IF_ERROR(device_.Arrived(
      /*wait=*/true, [&](size_t variable) { hooks.Report(variable); }));
  return GradientResult{losses / static_cast<double>(options_.micro_batches),
                        batch.size, pass.non_finite};
}

}  // namespace lockstep
