#include "server/state/file/step_record.h"

#include <zlib.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>

namespace lockstep::server {
namespace {

constexpr size_t kSlotSize = StepRecordSlots::kSize / 2;

struct Slot {
  uint64_t sequence = 0;  // of this write, from 1; 0: nothing here
  StepRecord record;
  uint32_t checksum = 0;  // CRC-32 of sequence and record
  uint32_t reserved = 0;
};
static_assert(std::is_trivially_copyable_v<Slot> && sizeof(Slot) <= kSlotSize);
static_assert(sizeof(StepRecord) == 344, "the layout is part of state files");

uint32_t Checksum(const Slot& slot) {
  std::array<unsigned char, offsetof(Slot, checksum)> bytes;
  std::memcpy(bytes.data(), &slot, bytes.size());
  return static_cast<uint32_t>(crc32(0, bytes.data(), bytes.size()));
}

bool IsPlausible(const StepRecord& record) {
  // The numbers choose a buffer and a step, so impossible ones must not be
  // followed even if their checksum is right.
  const bool nothing_prepared = record.prepared_step == StepRecord::kNone;
  const bool next_prepared = record.committed_step >= 0 &&
                             record.prepared_step > 0 &&
                             record.prepared_step - 1 == record.committed_step;
  return record.current_buffer <= 1 &&
         record.committed_step >= StepRecord::kNone && record.attempt >= 0 &&
         record.opened_step <= record.committed_step &&
         record.replicas_to_aggregate >= 0 && record.paused <= 1 &&
         record.settings_revision >= 0 &&
         std::isfinite(record.learning_rate_scale) &&
         (nothing_prepared || next_prepared);
}

std::optional<Slot> Load(const std::byte* memory, int index) {
  Slot slot;
  std::memcpy(&slot, memory + index * kSlotSize, sizeof(slot));
  if (slot.sequence == 0 || slot.checksum != Checksum(slot)) return {};
  if (!IsPlausible(slot.record)) return {};
  return slot;
}

// The index of the newest record, if one is whole.
std::optional<int> Newest(const std::byte* memory) {
  const std::optional<Slot> first = Load(memory, 0);
  const std::optional<Slot> second = Load(memory, 1);
  if (!first && !second) return {};
  // The other one is empty, or was being written when a process was killed.
  if (!first || !second) return second ? 1 : 0;
  return second->sequence > first->sequence ? 1 : 0;
}

// All earlier writes reach memory before all later ones. For a reader that maps
// the file once this process is dead, program order is enough.
void Order() { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace

absl::StatusOr<StepRecord> StepRecordSlots::Read() const {
  const std::optional<int> newest = Newest(memory_);
  if (newest) return Load(memory_, *newest)->record;
  return absl::DataLossError(
      "neither of the two step records is whole; the state is lost, restore "
      "it from a checkpoint");
}

void StepRecordSlots::Write(const StepRecord& record) {
  const std::optional<int> newest = Newest(memory_);
  Slot slot;
  slot.sequence = newest ? Load(memory_, *newest)->sequence + 1 : 1;
  slot.record = record;
  slot.checksum = Checksum(slot);
  // Always the older copy: the newest record stays whole until this one is.
  std::byte* target = memory_ + (newest == 0 ? kSlotSize : 0);
  const Slot nothing;
  Order();  // the state that the record names came first
  std::memcpy(target, &nothing.sequence, sizeof(nothing.sequence));
  Order();
  std::memcpy(target + sizeof(slot.sequence),
              reinterpret_cast<const std::byte*>(&slot) + sizeof(slot.sequence),
              sizeof(slot) - sizeof(slot.sequence));
  Order();
  std::memcpy(target, &slot.sequence, sizeof(slot.sequence));
  Order();
}

}  // namespace lockstep::server
