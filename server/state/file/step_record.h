#ifndef LOCKSTEP_SERVER_STATE_FILE_STEP_RECORD_H_
#define LOCKSTEP_SERVER_STATE_FILE_STEP_RECORD_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "server/update/slots.h"

namespace lockstep::server {

// StepRecord is the progress of a server that must survive its process. Its
// layout is part of state files.
struct StepRecord {
  static constexpr int64_t kNone = -1;

  uint64_t epoch = 0;              // of the newest chief that was obeyed
  uint64_t incarnation = 0;        // of the server process
  int64_t committed_step = kNone;  // kNone: not open yet, values may be unset
  int64_t prepared_step = kNone;   // or committed_step + 1, in the other buffer
  int64_t attempt = 0;             // of the prepared step
  // The step at which the state was opened: its values and slots were written,
  // not computed here.
  int64_t opened_step = kNone;
  int64_t replicas_to_aggregate = 0;  // run-time change; 0: as the job says
  double learning_rate_scale = 1;     // run-time change; times the schedule
  AllAdamPowers powers[2] = {};       // by buffer
  uint32_t current_buffer = 0;        // 0 or 1: holds the committed step
  uint32_t paused = 0;            // run-time change; 1: no step is committed
  int64_t settings_revision = 0;  // counts run-time changes
  // The epoch of the chief that has opened the state last: a mirror below that
  // of the others has missed an opening. 0: never opened.
  uint64_t opened_epoch = 0;
  // Elastic jobs: bit i % 64 of word i / 64: worker i takes part; none: all.
  std::array<uint64_t, 16> workers = {};

  bool operator==(const StepRecord&) const = default;
};

// StepRecordSlots keeps two copies of a step record in shared memory and writes
// them in turn, so that a process killed at any instant leaves the previous
// record or the new one, never a mixture.
//
// Threads: not thread-safe; one writer at a time, in one process.
// Borrows: the memory.
class StepRecordSlots {
 public:
  static constexpr size_t kSize = 1024;  // bytes of both

  // `memory` has kSize bytes at a multiple of 8; zeros hold no record.
  explicit StepRecordSlots(std::byte* memory) : memory_(memory) {}

  // Returns the newest record that is whole.
  //
  //   kDataLoss  there is none
  absl::StatusOr<StepRecord> Read() const;

  // Makes `record` the newest one.
  void Write(const StepRecord& record);

 private:
  std::byte* const memory_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_FILE_STEP_RECORD_H_
