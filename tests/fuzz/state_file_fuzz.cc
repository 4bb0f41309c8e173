// The head of a state file: the header and the step record in 4096 bytes. An
// earlier process may have left anything.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/types/span.h"
#include "server/state/state_header.h"
#include "server/state/step_record.h"

namespace {

using lockstep::StateHeader;
using lockstep::StepRecordSlots;

void CheckHeader(absl::Span<const std::byte> bytes) {
  const auto header = lockstep::DecodeStateHeader(bytes);
  if (!header.ok() || !lockstep::ValidateJobId(header->job_id).ok()) return;
  std::array<std::byte, StateHeader::kSize> again = {};
  lockstep::EncodeStateHeader(*header, absl::MakeSpan(again));
  const auto decoded = lockstep::DecodeStateHeader(again);
  if (!decoded.ok() || *decoded != *header) abort();
}

// Whatever was there, a record that is written can be read.
void CheckRecord(absl::Span<const std::byte> bytes) {
  alignas(8) std::array<std::byte, StepRecordSlots::kSize> memory = {};
  std::copy_n(bytes.begin(), std::min(bytes.size(), memory.size()),
              memory.begin());
  StepRecordSlots slots(memory.data());
  const auto found = slots.Read();
  lockstep::StepRecord next;
  if (found.ok()) next = *found;
  ++next.attempt;
  if (next.attempt < 0) return;
  slots.Write(next);
  const auto read = slots.Read();
  if (!read.ok() || !(*read == next)) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::Span<const std::byte> bytes(
      reinterpret_cast<const std::byte*>(data), size);
  CheckHeader(bytes);
  CheckRecord(bytes);
  return 0;
}
