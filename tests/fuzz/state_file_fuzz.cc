// The contents of a state file: the header and the step record in 4096 bytes,
// and a growing table's directory. An earlier process may have left any bytes.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "absl/types/span.h"
#include "server/state/file/state_header.h"
#include "server/state/file/step_record.h"
#include "server/state/tables/row_directory.h"

namespace {

using lockstep::server::StateHeader;
using lockstep::server::StepRecord;
using lockstep::server::StepRecordSlots;

void CheckHeader(absl::Span<const std::byte> bytes) {
  const auto header = lockstep::server::DecodeStateHeader(bytes);
  if (!header.ok() || !lockstep::server::ValidateJobId(header->job_id).ok())
    return;
  std::array<std::byte, StateHeader::kSize> again = {};
  lockstep::server::EncodeStateHeader(*header, absl::MakeSpan(again));
  const auto decoded = lockstep::server::DecodeStateHeader(again);
  if (!decoded.ok() || *decoded != *header) abort();
}

// Random bytes may be NaN, which does not equal itself.
void ForgetPowers(StepRecord& record) {
  record.powers[0] = record.powers[1] = {};
}

// After any contents, a written record must be readable.
void CheckRecord(absl::Span<const std::byte> bytes) {
  alignas(8) std::array<std::byte, StepRecordSlots::kSize> memory = {};
  std::copy_n(bytes.begin(), std::min(bytes.size(), memory.size()),
              memory.begin());
  StepRecordSlots slots(memory.data());
  const auto found = slots.Read();
  StepRecord next;
  if (found.ok()) next = *found;
  if (next.attempt == std::numeric_limits<int64_t>::max()) return;
  ++next.attempt;
  ForgetPowers(next);
  slots.Write(next);
  const auto read = slots.Read();
  if (!read.ok() || !(*read == next)) abort();
}

// The checksum keeps random bytes away from the checks behind it, so here they
// are a record that is written: it is read as it is, and only if its numbers
// choose a buffer and a step that there can be.
void CheckAnyRecord(absl::Span<const std::byte> bytes) {
  StepRecord record;
  std::memcpy(reinterpret_cast<std::byte*>(&record), bytes.data(),
              std::min(bytes.size(), sizeof(record)));
  ForgetPowers(record);
  alignas(8) std::array<std::byte, StepRecordSlots::kSize> memory = {};
  StepRecordSlots slots(memory.data());
  slots.Write(record);
  const auto read = slots.Read();
  if (!read.ok()) return;
  if (!(*read == record) || read->current_buffer > 1) abort();
  if (read->committed_step < StepRecord::kNone) abort();
  if (read->prepared_step == StepRecord::kNone) return;
  if (read->prepared_step - 1 != read->committed_step) abort();
}

// An accepted directory must have each of its keys in one row, and accept more.
void CheckDirectory(absl::Span<const std::byte> bytes) {
  std::array<int64_t, 9> memory = {};
  std::copy_n(bytes.begin(), std::min(bytes.size(), sizeof(memory)),
              reinterpret_cast<std::byte*>(memory.data()));
  const auto directory = lockstep::server::RowDirectory::Open(
      {reinterpret_cast<std::byte*>(memory.data()), sizeof(memory)});
  if (!directory.ok()) return;
  for (const auto& [key, row] : (*directory)->Kept()) {
    if ((*directory)->Find(key) != row) abort();
  }
  const int64_t size = (*directory)->size();
  if (size == (*directory)->capacity() || (*directory)->Find(7)) return;
  (*directory)->Add(7);
  if ((*directory)->Find(7) != size) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::Span<const std::byte> bytes(
      reinterpret_cast<const std::byte*>(data), size);
  CheckHeader(bytes);
  CheckRecord(bytes);
  CheckAnyRecord(bytes);
  CheckDirectory(bytes);
  return 0;
}
