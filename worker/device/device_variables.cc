#include "worker/device/device_variables.h"

#include <algorithm>
#include <cstdint>

#include "common/base/status_macros.h"
#include "worker/compute/backend/indices.h"

namespace lockstep::worker {
namespace {

Shape ShapeOf(const VariableSpec& variable) {
  return Shape(variable.shape.begin(), variable.shape.end());
}

ElementType TypeOf(const VariableSpec& variable) {
  // Halves are computed in float32: see FloatCopies.
  return variable.dtype == DType::kFloat64 ? ElementType::kFloat64
                                           : ElementType::kFloat32;
}

uintptr_t PageOf(const std::byte* byte) {
  constexpr uintptr_t kPage = 4096;
  return reinterpret_cast<uintptr_t>(byte) / kPage;
}

// Returns the memory of all values and gradients. A page can be pinned only
// once, so ranges that share a page are returned as one, with the bytes between
// them.
std::vector<absl::Span<std::byte>> MemoryOf(size_t variables,
                                            const ParameterMemory& memory) {
  std::vector<absl::Span<std::byte>> spans;
  for (size_t i = 0; i < variables; ++i) {
    for (const absl::Span<std::byte> span :
         {memory.value(i), memory.gradient(i)}) {
      if (!span.empty()) spans.push_back(span);
    }
  }
  std::sort(spans.begin(), spans.end(),
            [](const auto& a, const auto& b) { return a.data() < b.data(); });
  std::vector<absl::Span<std::byte>> ranges;
  for (const absl::Span<std::byte>& span : spans) {
    if (ranges.empty() || PageOf(span.data()) > PageOf(&ranges.back().back())) {
      ranges.push_back(span);
      continue;
    }
    std::byte* begin = ranges.back().data();
    ranges.back() = {begin,
                     static_cast<size_t>(span.data() + span.size() - begin)};
  }
  return ranges;
}

absl::StatusOr<std::unique_ptr<FloatCopies>> CopiesOf(
    const std::vector<VariableSpec>& variables, const ParameterMemory& memory) {
  if (!FloatCopies::AreNeeded(variables, memory)) return nullptr;
  return FloatCopies::Make(variables, memory);
}

// The memory that the device reads and writes.
const ParameterMemory& HostOf(const FloatCopies* copies,
                              const ParameterMemory& memory) {
  return copies == nullptr ? memory : copies->memory();
}

}  // namespace

ModelInput InputOf(const Examples& examples) {
  return {.height = examples.height,
          .width = examples.width,
          .channels = examples.channels,
          .classes = examples.classes,
          .tokens = examples.tokens};
}

std::vector<ConstTensor> ValueViews(const std::vector<VariableSpec>& variables,
                                    const ParameterMemory& memory) {
  std::vector<ConstTensor> views;
  for (size_t i = 0; i < variables.size(); ++i) {
    views.emplace_back(TypeOf(variables[i]), ShapeOf(variables[i]),
                       memory.value(i).data());
  }
  return views;
}

std::vector<Tensor> GradientViews(const std::vector<VariableSpec>& variables,
                                  const ParameterMemory& memory) {
  std::vector<Tensor> views;
  for (size_t i = 0; i < variables.size(); ++i) {
    views.emplace_back(TypeOf(variables[i]), ShapeOf(variables[i]),
                       memory.gradient(i).data());
  }
  return views;
}

DeviceVariables::DeviceVariables(std::vector<VariableSpec> variables,
                                 const ParameterMemory& memory,
                                 ComputeBackend& backend)
    : variables_(std::move(variables)),
      backend_(backend),
      made_floats_(CopiesOf(variables_, memory)),
      floats_(made_floats_.ok() ? made_floats_->get() : nullptr),
      host_values_(ValueViews(variables_, HostOf(floats_, memory))),
      host_gradients_(GradientViews(variables_, HostOf(floats_, memory))),
      memory_(MemoryOf(variables_.size(), HostOf(floats_, memory))) {
  // The device's memory is allocated by the first pass, as a constructor cannot
  // fail.
  if (!backend.UsesOrdinaryMemory()) return;
  values_ = host_values_;
  gradients_ = host_gradients_;
  prepared_ = true;
}

DeviceVariables::~DeviceVariables() { Settle(); }

void DeviceVariables::Settle() {
  for (const std::optional<CopyId>& copy : uploads_) {
    if (copy.has_value()) backend_.FinishCopy(*copy).IgnoreError();
  }
  for (const auto& [variable, copy] : downloads_) {
    backend_.FinishCopy(copy).IgnoreError();
  }
  uploads_.clear();
  downloads_.clear();
}

absl::Status DeviceVariables::Prepare() {
  LOCKSTEP_RETURN_IF_ERROR(made_floats_.status());
  if (prepared_) return absl::OkStatus();
  std::vector<Buffer> buffers;
  std::vector<Tensor> tensors;
  // The first half becomes the values, the second the gradients. Members are
  // set only when all allocations succeeded, so that a later pass may try
  // again.
  for (int copy = 0; copy < 2; ++copy) {
    for (const Tensor& host : host_gradients_) {
      LOCKSTEP_ASSIGN_OR_RETURN(Buffer buffer, backend_.Allocate(host.bytes()));
      tensors.emplace_back(host.type(), host.shape(), buffer.data());
      buffers.push_back(std::move(buffer));
    }
  }
  const auto half = tensors.begin() + static_cast<ptrdiff_t>(variables_.size());
  own_values_.assign(tensors.begin(), half);
  values_.assign(tensors.begin(), half);
  gradients_.assign(half, tensors.end());
  buffers_ = std::move(buffers);
  for (const absl::Span<std::byte>& memory : memory_) {
    absl::StatusOr<Buffer> pin = backend_.Pin(memory);
    if (pin.ok()) pins_.push_back(*std::move(pin));  // else copies are slower
  }
  prepared_ = true;
  return absl::OkStatus();
}

absl::Status DeviceVariables::BeginPass() {
  LOCKSTEP_RETURN_IF_ERROR(Prepare());
  // A dropped pass may have left copies that still read or write this memory.
  Settle();
  brought_.assign(variables_.size(), false);
  uploads_.resize(own_values_.size());
  return absl::OkStatus();
}

absl::Status DeviceVariables::Bring(size_t variable) {
  if (brought_[variable]) return absl::OkStatus();
  // Only now: the value may have arrived after the pass began.
  if (floats_ != nullptr) floats_->CopyValue(variable);
  if (!uploads_.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        uploads_[variable],
        backend_.StartUpload(host_values_[variable], own_values_[variable]));
  }
  brought_[variable] = true;
  return absl::OkStatus();
}

absl::Status DeviceVariables::StartUpload() {
  LOCKSTEP_RETURN_IF_ERROR(BeginPass());
  for (size_t i = 0; i < variables_.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(Bring(i));
  }
  return absl::OkStatus();
}

absl::Status DeviceVariables::BeforeUse(size_t first, size_t count) {
  for (size_t i = first; i < first + count && i < variables_.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(Bring(i));
    if (uploads_.empty()) continue;
    LOCKSTEP_RETURN_IF_ERROR(backend_.UseCopy(*uploads_[i]));
  }
  return absl::OkStatus();
}

absl::Status DeviceVariables::Upload() {
  LOCKSTEP_RETURN_IF_ERROR(StartUpload());
  LOCKSTEP_RETURN_IF_ERROR(BeforeUse(0, variables_.size()));
  for (const std::optional<CopyId>& copy : uploads_) {
    LOCKSTEP_RETURN_IF_ERROR(backend_.FinishCopy(*copy));
  }
  uploads_.clear();
  return absl::OkStatus();
}

// The value's upload is over: the operations that computed the gradient waited
// for it. So the value may be overwritten once the gradient is reported.
absl::Status DeviceVariables::StartDownload(size_t variable) {
  if (backend_.UsesOrdinaryMemory()) {
    // Nothing is copied, but gradients are still reported through Arrived(),
    // after the operations.
    downloads_.emplace_back(variable, CopyId{0});
    return absl::OkStatus();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const CopyId copy,
      backend_.StartDownload(gradients_[variable], host_gradients_[variable]));
  downloads_.emplace_back(variable, copy);
  return absl::OkStatus();
}

absl::Status DeviceVariables::Arrived(bool wait, const Report& report) {
  while (!downloads_.empty()) {
    const auto [variable, copy] = downloads_.front();
    if (!wait) {
      LOCKSTEP_ASSIGN_OR_RETURN(const bool done, backend_.CopyIsDone(copy));
      // Later copies may be done, but reports keep the order: it must be the
      // same on all workers.
      if (!done) return absl::OkStatus();
    }
    LOCKSTEP_RETURN_IF_ERROR(backend_.FinishCopy(copy));
    downloads_.pop_front();
    if (floats_ != nullptr) floats_->RoundGradient(variable);
    report(variable);
  }
  return absl::OkStatus();
}

absl::StatusOr<BatchView> BatchStage::View(const Batch& batch, int64_t first,
                                           int64_t count) {
  BatchView view;
  // A model of text has one label for each token: the next one.
  const int64_t labels = input_.tokens > 0 ? input_.tokens : 1;
  const auto stage = [&](const char* name, const std::vector<int32_t>& numbers,
                         Shape shape, Scratch& memory) {
    return StageIndices(name,
                        ConstTensor(ElementType::kInt32, std::move(shape),
                                    numbers.data() + first * labels),
                        input_.classes, backend_, memory);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(
      view.labels, stage("labels", batch.labels, {count * labels}, labels_));
  if (input_.tokens > 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        view.tokens, stage("tokens", batch.tokens, {count, labels}, tokens_));
    return view;
  }
  const Shape shape = {count, input_.height, input_.width, input_.channels};
  view.images = ConstTensor(ElementType::kFloat32, shape,
                            batch.images.data() + first * input_.elements());
  if (backend_.UsesOrdinaryMemory()) return view;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor staged,
      images_.Reserve(backend_, ElementType::kFloat32, shape));
  LOCKSTEP_RETURN_IF_ERROR(backend_.Upload(view.images, staged));
  view.images = staged;
  return view;
}

}  // namespace lockstep::worker
