#include "worker/device/model_gradient_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

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
      stage_(backend, input),
      numbers_(CountIndex(model.variables().size()), backend),
      recorder_(backend),
      replays_(MayReplay()) {}

// A batch that is computed in parts is a large one.
bool ModelGradientSource::MayReplay() const {
  size_t bytes = 0;
  for (const VariableSpec& variable : model_.variables()) {
    bytes += static_cast<size_t>(NumElements(variable.shape)) *
             ElementSize(variable.dtype);
  }
  return options_.replay && backend_.recording_device() != nullptr &&
         options_.micro_batches == 1 && !model_.random() &&
         bytes <= kMaxReplayedBytes;
}

absl::Status ModelGradientSource::PrepareDevice(const Batch& batch,
                                                const PassHooks& hooks) {
  if (batch.size % options_.micro_batches != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("micro_batches must divide the batch of ", batch.size,
                     " examples, got ", options_.micro_batches));
  }
  LOCKSTEP_RETURN_IF_ERROR(hooks.before_use ? device_.BeginPass()
                                            : device_.StartUpload());
  LOCKSTEP_RETURN_IF_ERROR(numbers_.Prepare());
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

absl::Status ModelGradientSource::BeforeUse(size_t first, size_t count,
                                            const PassHooks& hooks) {
  LOCKSTEP_RETURN_IF_ERROR(hooks.BeforeUse(first, count));
  return device_.BeforeUse(first, count);
}

absl::Status ModelGradientSource::CheckFinite(size_t variable) {
  LOCKSTEP_RETURN_IF_ERROR(numbers_.Finish(CountIndex(variable)));
  const auto count = static_cast<int64_t>(numbers_.value(CountIndex(variable)));
  if (count == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the gradient of ", model_.variables()[variable].name, " has ", count,
      " elements that are NaN or infinite, which refuse_non_finite forbids; "
      "make learning_rate smaller or set clipping"));
}

absl::Status ModelGradientSource::Report(bool wait, Pass& pass) {
  LOCKSTEP_RETURN_IF_ERROR(device_.Arrived(wait, [&](size_t variable) {
    if (pass.status.ok() && options_.refuse_non_finite) {
      pass.status = CheckFinite(variable);
    }
    if (pass.status.ok()) pass.outer.Report(variable);
  }));
  return pass.status;
}

absl::Status ModelGradientSource::Deliver(size_t variable, Pass& pass) {
  if (options_.refuse_non_finite && !pass.numbers_are_here) {
    LOCKSTEP_RETURN_IF_ERROR(numbers_.StartDownload(CountIndex(variable)));
  }
  LOCKSTEP_RETURN_IF_ERROR(device_.StartDownload(variable));
  return Report(/*wait=*/false, pass);
}

absl::Status ModelGradientSource::Send(size_t variable, Pass& pass) {
  LOCKSTEP_RETURN_IF_ERROR(backend_.CountNonFinite(
      device_.gradients()[variable], numbers_.At(CountIndex(variable))));
  return Deliver(variable, pass);
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

absl::Status ModelGradientSource::ComputePart(const Batch& batch, int64_t index,
                                              int64_t part, Pass& pass) {
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
    hooks.before_use = [&](size_t first, size_t count) {
      return BeforeUse(first, count, pass.outer);
    };
    hooks.before_gradients = [&] { return pass.outer.BeforeGradients(); };
  }
  const absl::Status status =
      model_.Gradients(backend_, view, device_.values(),
                       parts_.empty() ? device_.gradients() : parts_,
                       numbers_.At(static_cast<size_t>(part)), hooks);
  LOCKSTEP_RETURN_IF_ERROR(pass.status);
  return status;
}

RecordingKey ModelGradientSource::KeyOf(const BatchView& view) const {
  RecordingKey key;
  for (const ConstTensor& tensor : {view.images, view.tokens, view.labels}) {
    key.Add(tensor);
  }
  for (const ConstTensor& value : device_.values()) key.Add(value);
  for (const Tensor& gradient : device_.gradients()) key.Add(gradient);
  key.Add(numbers_.all());
  return key;
}

absl::Status ModelGradientSource::CallOperations(const BatchView& view) {
  order_.clear();
  absl::Status counted;
  PassHooks hooks;
  hooks.on_gradient = [&](size_t variable) {
    order_.push_back(variable);
    counted.Update(backend_.CountNonFinite(device_.gradients()[variable],
                                           numbers_.At(CountIndex(variable))));
  };
  LOCKSTEP_RETURN_IF_ERROR(model_.Gradients(backend_, view, device_.values(),
                                            device_.gradients(), numbers_.At(0),
                                            hooks));
  return counted;
}

absl::Status ModelGradientSource::ComputeAtOnce(const Batch& batch,
                                                Pass& pass) {
  LOCKSTEP_ASSIGN_OR_RETURN(const BatchView view,
                            stage_.View(batch, 0, batch.size));
  LOCKSTEP_RETURN_IF_ERROR(pass.outer.CheckWanted());
  LOCKSTEP_RETURN_IF_ERROR(BeforeUse(0, model_.variables().size(), pass.outer));
  LOCKSTEP_RETURN_IF_ERROR(pass.outer.BeforeGradients());
  LOCKSTEP_RETURN_IF_ERROR(
      recorder_.Run(KeyOf(view), [&] { return CallOperations(view); }));
  if (const absl::Status why = recorder_.TakeFailure(); !why.ok()) {
    spdlog::warn("passes are launched, for none can be replayed: {}",
                 why.message());
    replays_ = false;
  }
  if (options_.refuse_non_finite) {
    LOCKSTEP_RETURN_IF_ERROR(numbers_.Download());
    pass.numbers_are_here = true;
    for (const size_t variable : order_) {
      LOCKSTEP_RETURN_IF_ERROR(CheckFinite(variable));
    }
  }
  for (const size_t variable : order_) {
    LOCKSTEP_RETURN_IF_ERROR(pass.outer.CheckWanted());
    LOCKSTEP_RETURN_IF_ERROR(Deliver(variable, pass));
  }
  return absl::OkStatus();
}

GradientResult ModelGradientSource::Result(const Batch& batch) const {
  double losses = 0;
  for (size_t part = 0; part < CountIndex(0); ++part) {
    losses += numbers_.value(part);
  }
  double count = 0;
  for (size_t i = 0; i < device_.gradients().size(); ++i) {
    count += numbers_.value(CountIndex(i));
  }
  return {losses / static_cast<double>(options_.micro_batches), batch.size,
          static_cast<int64_t>(count)};
}

absl::StatusOr<GradientResult> ModelGradientSource::Compute(
    int64_t index, const PassHooks& hooks) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Batch batch, batches_.Get(index));
  LOCKSTEP_RETURN_IF_ERROR(PrepareDevice(batch, hooks));
  Pass pass{.outer = hooks};
  if (replays_) {
    LOCKSTEP_RETURN_IF_ERROR(ComputeAtOnce(batch, pass));
  } else {
    for (int64_t part = 0; part < options_.micro_batches; ++part) {
      LOCKSTEP_RETURN_IF_ERROR(ComputePart(batch, index, part, pass));
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(Report(/*wait=*/true, pass));
  if (!pass.numbers_are_here) LOCKSTEP_RETURN_IF_ERROR(numbers_.Download());
  return Result(batch);
}

}  // namespace lockstep
