#include "server/state/state_tensors.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::server {

bool MovesAllRows(const VariableSettings& settings,
                  const std::vector<OptimizerConfig>& optimizers) {
  // Adam's momentum decays in rows without gradients too, and moves their
  // values.
  return settings.averaged ||
         optimizers[settings.optimizer].kind == OptimizerConfig::Kind::kAdam;
}

std::vector<std::vector<SlotSpec>> SlotsByVariable(
    const std::vector<OptimizerConfig>& optimizers,
    const std::vector<VariableSettings>& settings) {
  std::vector<std::vector<SlotSpec>> slots;
  for (const VariableSettings& setting : settings) {
    slots.push_back(Slots(optimizers[setting.optimizer]));
    if (setting.averaged) slots.back().push_back(MovingAverageSlot());
  }
  return slots;
}

StateTensors::StateTensors(std::vector<VariableSpec> variables,
                           std::vector<OptimizerConfig> optimizers,
                           std::vector<VariableSettings> settings,
                           StateLayout layout, std::unique_ptr<StateFile> file)
    : variables_(std::move(variables)),
      optimizers_(std::move(optimizers)),
      settings_(std::move(settings)),
      slots_(SlotsByVariable(optimizers_, settings_)),
      layout_(std::move(layout)),
      file_(std::move(file)) {}

absl::Span<std::byte> StateTensors::Tensor(size_t part, size_t tensor,
                                           int buffer) const {
  return file_->bytes().subspan(layout_.TensorOffset(part, tensor, buffer),
                                layout_.TensorSize(part));
}

int64_t StateTensors::Updates(size_t part) const {
  int64_t updates = 0;
  std::memcpy(&updates,
              Counter(part, static_cast<int>(record().current_buffer)),
              sizeof(updates));
  return updates;
}

void StateTensors::SetNextUpdates(size_t part, int64_t updates) const {
  // The counters have two buffers like the tensors: the commit makes all of
  // them current at the same instant.
  std::memcpy(Counter(part, NextBuffer()), &updates, sizeof(updates));
}

void StateTensors::SetUpdates(size_t part, int64_t updates) const {
  std::memcpy(Counter(part, static_cast<int>(record().current_buffer)),
              &updates, sizeof(updates));
}

int StateTensors::NextBuffer() const {
  return in_place() ? 0 : 1 - static_cast<int>(record().current_buffer);
}

absl::Span<const std::byte> StateTensors::Committed(size_t part,
                                                    size_t tensor) const {
  return Tensor(part, tensor, CommittedBuffer(part));
}

absl::Span<std::byte> StateTensors::Next(size_t part, size_t tensor) const {
  return Tensor(part, tensor, in_place() ? 0 : 1 - CommittedBuffer(part));
}

int StateTensors::CommittedBuffer(size_t part) const {
  // A logged part stays in buffer 0; its buffer 1 holds the rows of the log.
  return is_logged(part) ? 0 : static_cast<int>(record().current_buffer);
}

bool StateTensors::is_logged(size_t part) const {
  return !in_place() && this->part(part).is_table() &&
         !MovesAllRows(settings(part), optimizers_);
}

size_t StateTensors::RowSize(size_t part) const {
  return this->part(part).row_width * ElementSize(this->part(part).dtype);
}

absl::Status StateTensors::CheckRange(size_t part, size_t tensor, size_t first,
                                      size_t size) const {
  if (part >= num_parts()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "part ", part, ": this server has ", num_parts(), " parts"));
  }
  if (tensor >= num_tensors(part)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", tensor, ": part ", part, " has ", num_tensors(part)));
  }
  const size_t whole = layout_.TensorSize(part);
  // A difference, since the sum of both may overflow.
  if (first <= whole && size <= whole - first) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("part ", part, " has ", whole,
                                                 " bytes, not ", size,
                                                 " from byte ", first, " on"));
}

absl::Status StateTensors::CheckNotActive(absl::string_view action) const {
  if (!is_active()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", action, " variables: they are in use, at step ",
                   committed_step()));
}

}  // namespace lockstep::server
