#include "worker/device/model_gradient_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

// The pass of one part of a batch as the model sees it: it puts the device
// between the model and the caller's pass. Only the first part waits for
// values, and only the last one reports gradients.
class ModelGradientSource::PartPass final : public GradientPass {
 public:
  PartPass(ModelGradientSource& source, int64_t part, GradientPass& outer)
      : source_(source), part_(part), outer_(outer) {}

  absl::Status NeedValues(size_t first, size_t count) override {
    if (part_ > 0) return CheckWanted();
    return source_.NeedValues(first, count, outer_);
  }

  absl::Status CheckWanted() override {
    return status_.ok() ? outer_.CheckWanted() : status_;
  }

  void GradientReady(size_t variable) override {
    // GradientReady() cannot fail, so the error ends the pass at its next
    // CheckWanted().
    if (status_.ok()) status_ = source_.Add(variable, part_, outer_);
  }

  // The first error of a gradient that was ready.
  const absl::Status& status() const { return status_; }

 private:
  ModelGradientSource& source_;
  const int64_t part_;
  GradientPass& outer_;
  absl::Status status_;
};

ModelGradientSource::ModelGradientSource(Model& model, const ModelInput& input,
                                         ComputeBackend& backend,
                                         BatchSource batches,
                                         const ParameterMemory& memory,
                                         const Options& options)
    : model_(model),
      backend_(backend),
      batches_(std::move(batches), /*depth=*/2, options.spans),
      options_(options),
      device_(model.variables(), memory, backend),
      stage_(backend, input),
      numbers_(CountIndex(model.variables().size()), backend),
      recorder_(backend),
      replays_(MayReplay()) {}

// A batch in several parts is large, and a model that draws random numbers
// needs another key in each pass, which a recording would repeat.
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

absl::Status ModelGradientSource::PrepareDevice(bool has_all_values) {
  if (batch_.size % options_.micro_batches != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("micro_batches must divide the batch of ", batch_.size,
                     " examples, got ", options_.micro_batches));
  }
  // An early pass uploads each layer's values when they have arrived.
  LOCKSTEP_RETURN_IF_ERROR(has_all_values ? device_.StartUpload()
                                          : device_.BeginPass());
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

absl::Status ModelGradientSource::NeedValues(size_t first, size_t count,
                                             GradientPass& pass) {
  LOCKSTEP_RETURN_IF_ERROR(pass.NeedValues(first, count));
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

absl::Status ModelGradientSource::Report(bool wait, GradientPass& pass) {
  absl::Status finite;
  LOCKSTEP_RETURN_IF_ERROR(device_.Arrived(wait, [&](size_t variable) {
    if (finite.ok() && options_.refuse_non_finite) {
      finite = CheckFinite(variable);
    }
    if (finite.ok()) pass.GradientReady(variable);
  }));
  return finite;
}

absl::Status ModelGradientSource::Deliver(size_t variable, GradientPass& pass) {
  LOCKSTEP_RETURN_IF_ERROR(device_.StartDownload(variable));
  return Report(/*wait=*/false, pass);
}

absl::Status ModelGradientSource::Send(size_t variable, GradientPass& pass) {
  LOCKSTEP_RETURN_IF_ERROR(backend_.CountNonFinite(
      device_.gradients()[variable], numbers_.At(CountIndex(variable))));
  if (options_.refuse_non_finite) {
    // Before the gradient's copy, so that CheckFinite() finds the count soon
    // after it.
    LOCKSTEP_RETURN_IF_ERROR(numbers_.StartDownload(CountIndex(variable)));
  }
  return Deliver(variable, pass);
}

absl::Status ModelGradientSource::Add(size_t variable, int64_t part,
                                      GradientPass& pass) {
  if (!parts_.empty()) {
    // The parts are of equal size, so the mean of their means is that of the
    // batch. The first part overwrites the sum of the pass before.
    const double share = 1 / static_cast<double>(options_.micro_batches);
    LOCKSTEP_RETURN_IF_ERROR(backend_.Combine(parts_[variable], share,
                                              part == 0 ? 0 : 1,
                                              device_.gradients()[variable]));
  }
  const bool last = part + 1 == options_.micro_batches;
  return last ? Send(variable, pass) : absl::OkStatus();
}

absl::StatusOr<BatchView> ModelGradientSource::ViewOf(int64_t part) {
  const int64_t size = batch_.size / options_.micro_batches;
  LOCKSTEP_ASSIGN_OR_RETURN(BatchView view,
                            stage_.View(batch_, part * size, size));
  // Each part of each batch has a number of its own in the job, and an odd
  // constant (2^64 over the golden ratio) spreads the keys: a pass that is
  // redone draws the same numbers.
  const auto number =
      static_cast<uint64_t>(index_ * options_.micro_batches + part);
  view.key = options_.key + number * 0x9e3779b97f4a7c15u;
  return view;
}

absl::Status ModelGradientSource::BeginPart(int64_t part, PartPass& part_pass) {
  LOCKSTEP_ASSIGN_OR_RETURN(view_, ViewOf(part));
  return model_.Begin(backend_, view_, device_.values(), part_pass);
}

absl::Status ModelGradientSource::FinishPart(int64_t part,
                                             PartPass& part_pass) {
  const absl::Status status = model_.Finish(
      backend_, device_.values(), parts_.empty() ? device_.gradients() : parts_,
      numbers_.At(static_cast<size_t>(part)), part_pass);
  // Before the model's status, which is only kAborted if GradientReady()
  // failed.
  LOCKSTEP_RETURN_IF_ERROR(part_pass.status());
  return status;
}

RecordingKey ModelGradientSource::KeyOf(const BatchView& view) const {
  // A recording has the addresses of its tensors in it, so it is replayed only
  // if all are the same.
  RecordingKey key;
  for (const ConstTensor& tensor : {view.images, view.tokens, view.labels}) {
    key.Add(tensor);
  }
  for (const ConstTensor& value : device_.values()) key.Add(value);
  for (const Tensor& gradient : device_.gradients()) key.Add(gradient);
  key.Add(numbers_.all());
  return key;
}

absl::Status ModelGradientSource::CallOperations() {
  // A recording must contain no copies: gradients are counted on the device and
  // delivered once it has run.
  class Recorded final : public GradientPass {
   public:
    explicit Recorded(ModelGradientSource& source) : source_(source) {}
    void GradientReady(size_t variable) override {
      source_.order_.push_back(variable);
      counted.Update(source_.backend_.CountNonFinite(
          source_.device_.gradients()[variable],
          source_.numbers_.At(source_.CountIndex(variable))));
    }
    absl::Status counted;

   private:
    ModelGradientSource& source_;
  } recorded(*this);
  order_.clear();
  LOCKSTEP_RETURN_IF_ERROR(model_.Gradients(backend_, view_, device_.values(),
                                            device_.gradients(), numbers_.At(0),
                                            recorded));
  return recorded.counted;
}

absl::Status ModelGradientSource::FinishAtOnce(GradientPass& pass) {
  LOCKSTEP_RETURN_IF_ERROR(
      recorder_.Run(KeyOf(view_), [&] { return CallOperations(); }));
  // A recording that failed was run operation by operation, so this pass is
  // complete; later ones do not try again.
  if (const absl::Status why = recorder_.TakeFailure(); !why.ok()) {
    spdlog::warn("passes are launched, for none can be replayed: {}",
                 why.message());
    replays_ = false;
  }
  if (options_.refuse_non_finite) {
    LOCKSTEP_RETURN_IF_ERROR(numbers_.Download());
    for (const size_t variable : order_) {
      LOCKSTEP_RETURN_IF_ERROR(CheckFinite(variable));
    }
  }
  for (const size_t variable : order_) {
    LOCKSTEP_RETURN_IF_ERROR(pass.CheckWanted());
    LOCKSTEP_RETURN_IF_ERROR(Deliver(variable, pass));
  }
  return absl::OkStatus();
}

GradientResult ModelGradientSource::Result() const {
  double losses = 0;
  for (size_t part = 0; part < CountIndex(0); ++part) {
    losses += numbers_.value(part);
  }
  double count = 0;
  for (size_t i = 0; i < device_.gradients().size(); ++i) {
    count += numbers_.value(CountIndex(i));
  }
  return {losses / static_cast<double>(options_.micro_batches), batch_.size,
          static_cast<int64_t>(count)};
}

absl::Status ModelGradientSource::Begin(int64_t index, GradientPass& pass) {
  LOCKSTEP_ASSIGN_OR_RETURN(batch_, batches_.Get(index));
  index_ = index;
  LOCKSTEP_RETURN_IF_ERROR(PrepareDevice(pass.HasAllValues()));
  if (!replays_) {
    PartPass part_pass(*this, 0, pass);
    return BeginPart(0, part_pass);
  }
  // A replayed pass runs as a whole in Finish(), with all values.
  LOCKSTEP_ASSIGN_OR_RETURN(view_, ViewOf(0));
  return NeedValues(0, model_.variables().size(), pass);
}

absl::StatusOr<GradientResult> ModelGradientSource::Finish(GradientPass& pass) {
  // FinishAtOnce() may clear `replays_`; this pass is then computed already.
  const bool at_once = replays_;
  if (at_once) LOCKSTEP_RETURN_IF_ERROR(FinishAtOnce(pass));
  for (int64_t part = 0; !at_once && part < options_.micro_batches; ++part) {
    PartPass part_pass(*this, part, pass);
    if (part > 0) LOCKSTEP_RETURN_IF_ERROR(BeginPart(part, part_pass));
    LOCKSTEP_RETURN_IF_ERROR(FinishPart(part, part_pass));
  }
  LOCKSTEP_RETURN_IF_ERROR(Report(/*wait=*/true, pass));
  const bool numbers_are_here = at_once && options_.refuse_non_finite;
  if (!numbers_are_here) LOCKSTEP_RETURN_IF_ERROR(numbers_.Download());
  return Result();
}

}  // namespace lockstep::worker
