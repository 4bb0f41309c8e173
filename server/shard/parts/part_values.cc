#include "server/shard/parts/part_values.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/shard/parts/row_gradients.h"

namespace lockstep::server {

PartValues::PartValues(LockedParts& parts,
                       std::shared_ptr<EventQueue<int>> returned,
                       absl::StatusOr<std::unique_ptr<WriteCounters>> counters)
    : parts_(parts),
      loans_(ReadLoans::Create(2 * parts.num_parts(),
                               [returned = std::move(returned)](int buffer) {
                                 if (returned != nullptr)
                                   returned->Push(buffer / 2);
                               })),
      counters_(std::move(counters)) {}

// Loans and counters number the buffers of all parts: part p has 2p and 2p + 1.
int PartValues::CommittedBuffer(int part) const {
  return 2 * part + parts_.store->record().current_buffer;
}

int PartValues::NextBuffer(int part) const {
  return 2 * part + 1 - parts_.store->record().current_buffer;
}

bool PartValues::ClaimNext(int part) {
  MutexLock lock(parts_.record_mutex);
  // In place every reader has a copy.
  return parts_.store->in_place() || loans_->Claim(NextBuffer(part));
}

LentBytes PartValues::LendNext(int part) {
  MutexLock lock(parts_.record_mutex);
  return Lend(NextBuffer(part), parts_.store->Next(part, 0));
}

void PartValues::BeginWrite(int part) {
  if (counters_.ok()) (*counters_)->Begin(NextBuffer(part));
}

LentBytes PartValues::Lend(int buffer,
                           absl::Span<const std::byte> value) const {
  // The loan holds the store, so the memory stays mapped if the shard is
  // discarded.
  LentBytes lent{value, loans_->Lend(buffer, parts_.store)};
  if (counters_.ok()) {
    // A reader that finds another count after its copy has copied too late.
    lent.place = {parts_.store->OffsetOf(value), buffer,
                  (*counters_)->Count(buffer)};
  }
  return lent;
}

absl::StatusOr<PartValues::Shared> PartValues::Share() const {
  if (!counters_.ok()) {
    return absl::FailedPreconditionError(counters_.status().message());
  }
  return Shared{parts_.store->Share(), (*counters_)->file()};
}

LentBytes PartValues::LendCommitted(int part, int64_t& step) const {
  if (parts_.store->in_place()) {
    // Allocated before the locks: a large part takes time.
    auto copy = std::make_shared<std::vector<std::byte>>(parts_.size(part));
    MutexLock part_lock(parts_.part_mutexes[part]);
    MutexLock lock(parts_.record_mutex);
    const absl::Span<const std::byte> value = parts_.store->Committed(part, 0);
    std::copy(value.begin(), value.end(), copy->begin());
    step = parts_.store->committed_step();
    return {*copy, copy};
  }
  MutexLock lock(parts_.record_mutex);
  // The loan begins under the lock that a commit takes: afterwards the buffer
  // might be the next one, and an update might claim it.
  step = parts_.store->committed_step();
  return Lend(CommittedBuffer(part), parts_.store->Committed(part, 0));
}

absl::StatusOr<int64_t> PartValues::Read(int part, int tensor,
                                         absl::Span<std::byte> out) const {
  if (part < 0 || part >= parts_.num_parts() || tensor < 0 ||
      tensor >= parts_.num_tensors(part) || out.size() != parts_.size(part)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no part ", part, " with tensor ", tensor, " of ", out.size(),
        " bytes among the ", parts_.num_parts(), " parts of this server"));
  }
  MutexLock part_lock(parts_.part_mutexes[part]);
  absl::Span<const std::byte> source;
  int64_t step = 0;
  {
    MutexLock lock(parts_.record_mutex);
    source = parts_.store->Committed(part, tensor);
    step = parts_.store->committed_step();
  }
  // A commit meanwhile is harmless: this buffer is written again only under the
  // part's lock.
  std::memcpy(out.data(), source.data(), out.size());
  return step;
}

absl::Status PartValues::CheckRead(int part, size_t rows, size_t size) const {
  if (part < 0 || part >= parts_.num_parts() ||
      !parts_.parts[part].is_table()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows of part ", part, ", which is no table"));
  }
  const size_t row =
      parts_.parts[part].row_width * ElementSize(parts_.parts[part].dtype);
  if (size == rows * row) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(rows, " rows of ", parts_.Name(part), ", of ", row,
                   " bytes each, do not fit ", size, " bytes"));
}

absl::StatusOr<int64_t> PartValues::ReadRows(int part,
                                             absl::Span<const int64_t> rows,
                                             absl::Span<std::byte> out) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckRead(part, rows.size(), out.size()));
  LOCKSTEP_RETURN_IF_ERROR(CheckRows(part, parts_.parts[part], rows));
  return CopyRows(part, 0, rows, out);
}

absl::StatusOr<int64_t> PartValues::ReadKeys(int part,
                                             absl::Span<const int64_t> keys,
                                             absl::Span<std::byte> out) {
  LOCKSTEP_RETURN_IF_ERROR(CheckRead(part, keys.size(), out.size()));
  MutexLock part_lock(parts_.part_mutexes[part]);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<int64_t> rows,
      parts_.store->tables().MakeRows(part, keys, parts_.job.seed));
  return CopyRowsLocked(part, 0, rows, out.data());
}

int64_t PartValues::CopyRows(int part, int tensor,
                             absl::Span<const int64_t> rows,
                             absl::Span<std::byte> out) const {
  MutexLock part_lock(parts_.part_mutexes[part]);
  return CopyRowsLocked(part, tensor, rows, out.data());
}

int64_t PartValues::CopyRowsLocked(int part, int tensor,
                                   absl::Span<const int64_t> rows,
                                   std::byte* to) const {
  const size_t size =
      parts_.parts[part].row_width * ElementSize(parts_.parts[part].dtype);
  const std::byte* from = nullptr;
  int64_t step = 0;
  {
    MutexLock lock(parts_.record_mutex);
    from = parts_.store->Committed(part, tensor).data();
    step = parts_.store->committed_step();
  }
  for (const int64_t row : rows) {
    std::memcpy(to, from + static_cast<size_t>(row) * size, size);
    to += size;
  }
  return step;
}

std::vector<std::pair<int64_t, int64_t>> PartValues::KeptRows(int part) const {
  MutexLock part_lock(parts_.part_mutexes[part]);
  return parts_.store->tables().KeptRows(part);
}

}  // namespace lockstep::server
