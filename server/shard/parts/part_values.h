#ifndef LOCKSTEP_SERVER_SHARD_PARTS_PART_VALUES_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_PART_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/event_queue.h"
#include "common/memory/shared_memory.h"
#include "common/memory/write_counters.h"
#include "server/shard/parts/locked_parts.h"
#include "server/shard/parts/read_loans.h"
#include "server/step/engine.h"

namespace lockstep::server {

// PartValues reads the parts of a server: it lends values in place if each part
// has two buffers, and copies them otherwise. Processes of the same host may
// copy lent values from shared memory; counters of writes show a reader whether
// a value was overwritten while it copied.
//
// Threads: safe to share.
// Units:   sizes count bytes; tensor 0 is a value, tensor k its k-th slot.
// Borrows: the parts.
class PartValues {
 public:
  // `returned` receives each part for which ClaimNext() has returned false,
  // once its last reader has returned it; may be null. `counters` must be an
  // error with the reason if values cannot be shared.
  PartValues(LockedParts& parts, std::shared_ptr<EventQueue<int>> returned,
             absl::StatusOr<std::unique_ptr<WriteCounters>> counters);
  ~PartValues() { loans_->Close(); }
  PartValues(const PartValues&) = delete;
  PartValues& operator=(const PartValues&) = delete;

  // Lends the committed value of an existing part, and returns its step in
  // `step`. In compatible mode, which updates in place, lends a copy.
  LentBytes LendCommitted(int part, int64_t& step) const
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // Copies committed rows of a table to `out`, in the order of `rows`, which
  // count within the part. Returns their step.
  //
  //   kInvalidArgument  unknown part, a part that is no table, a row beyond the
  //                     part, or `out` has another length
  absl::StatusOr<int64_t> ReadRows(int part, absl::Span<const int64_t> rows,
                                   absl::Span<std::byte> out) const
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // As ReadRows(), for keys of a part that grows. Keys without a row get one,
  // with initial values.
  //
  //   kInvalidArgument    as ReadRows(), or a negative key, or one of another
  //                       part
  //   kResourceExhausted  no room for the new rows; none was made
  absl::StatusOr<int64_t> ReadKeys(int part, absl::Span<const int64_t> keys,
                                   absl::Span<std::byte> out)
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // The keys and rows of a growing part that steps have changed, ascending by
  // key: a checkpoint holds these rows.
  std::vector<std::pair<int64_t, int64_t>> KeptRows(int part) const
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // Copies rows of a committed tensor of a table to `out`. Part, tensor and
  // rows must exist, and `out` must have their size. Returns their step.
  int64_t CopyRows(int part, int tensor, absl::Span<const int64_t> rows,
                   absl::Span<std::byte> out) const
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // The files from which a process of this host copies LentBytes::place.
  struct Shared {
    SharedFile values;
    SharedFile counters;
  };
  // Returns the files.
  //
  //   kFailedPrecondition  values are not shared; the message says why
  absl::StatusOr<Shared> Share() const;

  // Copies a committed tensor of a part to `out`. Returns its step.
  //
  //   kInvalidArgument  unknown part or tensor, or `out` has another length
  absl::StatusOr<int64_t> Read(int part, int tensor,
                               absl::Span<std::byte> out) const
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // As PartUpdater::ClaimNext() and LendNext().
  bool ClaimNext(int part) ABSL_LOCKS_EXCLUDED(parts_.record_mutex);
  LentBytes LendNext(int part) ABSL_LOCKS_EXCLUDED(parts_.record_mutex);

  // Marks the next value of a part as about to be written, for processes that
  // read it in place. The caller must hold `record_mutex`, which the analysis
  // cannot see through another object's reference to the parts.
  void BeginWrite(int part) ABSL_NO_THREAD_SAFETY_ANALYSIS;

 private:
  int64_t CopyRowsLocked(int part, int tensor, absl::Span<const int64_t> rows,
                         std::byte* to) const
      ABSL_LOCKS_EXCLUDED(parts_.record_mutex);
  // Checks that the part is a table and that `rows` rows of it have `size`
  // bytes.
  absl::Status CheckRead(int part, size_t rows, size_t size) const;
  LentBytes Lend(int buffer, absl::Span<const std::byte> value) const;
  // The number, for loans and counters, of the part's next or committed value.
  int NextBuffer(int part) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(parts_.record_mutex);
  int CommittedBuffer(int part) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(parts_.record_mutex);

  LockedParts& parts_;
  // The buffers of values of part p are 2p and 2p + 1.
  const std::shared_ptr<ReadLoans> loans_;
  const absl::StatusOr<std::unique_ptr<WriteCounters>> counters_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_PART_VALUES_H_
