#ifndef LOCKSTEP_SERVER_STATE_STATE_TENSORS_H_
#define LOCKSTEP_SERVER_STATE_STATE_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "common/job/variable_settings.h"
#include "common/plan/variable_spec.h"
#include "server/state/file/state_file.h"
#include "server/state/file/state_layout.h"
#include "server/state/file/step_record.h"
#include "server/update/slots.h"

namespace lockstep::server {

// The tensors that are kept beside each variable: its slots, then its average
// if it has one.
std::vector<std::vector<SlotSpec>> SlotsByVariable(
    const std::vector<OptimizerConfig>& optimizers,
    const std::vector<VariableSettings>& settings);

// True if every step changes all rows of a variable, whichever rows have
// gradients.
bool MovesAllRows(const VariableSettings& settings,
                  const std::vector<OptimizerConfig>& optimizers);

// StateTensors finds each tensor of a server's parts in the state file, and
// distinguishes the committed buffer of a part from the next one.
//
// Threads: as VariableStore.
// Units:   spans and sizes count bytes.
class StateTensors {
 public:
  StateTensors(std::vector<VariableSpec> variables,
               std::vector<OptimizerConfig> optimizers,
               std::vector<VariableSettings> settings, StateLayout layout,
               std::unique_ptr<StateFile> file);
  StateTensors(const StateTensors&) = delete;
  StateTensors& operator=(const StateTensors&) = delete;

  StateFile& file() const { return *file_; }
  const StateLayout& layout() const { return layout_; }
  const StepRecord& record() const { return file_->record(); }
  int64_t committed_step() const { return record().committed_step; }
  bool is_active() const { return committed_step() != StepRecord::kNone; }
  bool in_place() const { return layout_.num_buffers() == 1; }
  const std::vector<OptimizerConfig>& optimizers() const { return optimizers_; }

  size_t num_parts() const { return layout_.parts().size(); }
  const PartSpec& part(size_t part) const { return layout_.parts()[part]; }
  const VariableSpec& variable(size_t part) const {
    return variables_[this->part(part).variable];
  }
  const VariableSettings& settings(size_t part) const {
    return settings_[this->part(part).variable];
  }
  const std::vector<SlotSpec>& slots(size_t part) const {
    return slots_[this->part(part).variable];
  }
  // Tensor 0 of a part is its value, then come its slots, then its average.
  size_t num_tensors(size_t part) const { return layout_.num_tensors(part); }
  size_t RowSize(size_t part) const;

  // True if the next step of a part is written row by row, by TableStore.
  bool is_logged(size_t part) const;

  // Returns the committed value or slot. The memory is not overwritten before
  // the step after the next one is being prepared; readers must be done by
  // then.
  absl::Span<const std::byte> Committed(size_t part, size_t tensor) const;
  // Returns the memory for the next step's value or slot; in place, that of the
  // committed one.
  absl::Span<std::byte> Next(size_t part, size_t tensor) const;

  // Returns the value or slot in a given buffer, 0 or 1.
  absl::Span<std::byte> Tensor(size_t part, size_t tensor, int buffer) const;
  // Returns the number of updates of a part up to the committed step, for
  // optimizers that depend on it. SetNextUpdates() sets the number up to the
  // next step. In place, both are one number.
  int64_t Updates(size_t part) const;
  void SetNextUpdates(size_t part, int64_t updates) const;
  // Sets the number that Updates() returns. Must be called before the state is
  // active.
  void SetUpdates(size_t part, int64_t updates) const;

  // The buffer for the next step of all parts that are not logged.
  int NextBuffer() const;
  // The buffer with the committed step of a part.
  int CommittedBuffer(size_t part) const;

  // Checks a range of a tensor, from byte `first` on.
  //
  //   kInvalidArgument  unknown part or tensor, or beyond its end
  absl::Status CheckRange(size_t part, size_t tensor, size_t first,
                          size_t size) const;
  // Checks that the state is not active; `action` is for the message.
  //
  //   kFailedPrecondition  active already
  absl::Status CheckNotActive(absl::string_view action) const;

 private:
  std::byte* Counter(size_t part, int buffer) const {
    return file_->bytes().data() + layout_.CounterOffset(part, buffer);
  }

  const std::vector<VariableSpec> variables_;
  const std::vector<OptimizerConfig> optimizers_;
  const std::vector<VariableSettings> settings_;    // by variable
  const std::vector<std::vector<SlotSpec>> slots_;  // by variable
  const StateLayout layout_;
  const std::unique_ptr<StateFile> file_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_STATE_TENSORS_H_
