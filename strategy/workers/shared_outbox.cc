#include "strategy/workers/shared_outbox.h"

#include <algorithm>
#include <string>

#include "absl/types/span.h"
#include "common/base/log.h"
#include "common/wire/shared_memory_codec.h"
#include "strategy/workers/parcel_codec.h"

namespace lockstep::strategy {

bool SharedOutbox::Begin(size_t size) {
  used_ = 0;
  places_.clear();
  if (refused_ || size == 0) return false;
  if (memory_ != nullptr && memory_->bytes().size() >= size) return true;
  // First: there may be no room for both. Receivers let go of the old memory
  // when they read their next payload.
  memory_.reset();
  auto memory = SharedMemory::Create("lockstep-parcels", size);
  if (!memory.ok()) {
    spdlog::warn("shares no memory with other members of this host: {}",
                 std::string(memory.status().message()));
    refused_ = true;
    return false;
  }
  memory_ = *std::move(memory);
  return true;
}

v1::SharedPayload SharedOutbox::Place(const Parcel& parcel) {
  const auto [place, is_new] = places_.try_emplace(parcel.get(), used_);
  if (is_new) {
    ForEachPiece(*parcel, [this](absl::Span<const std::byte> piece) {
      std::copy(piece.begin(), piece.end(), memory_->bytes().begin() + used_);
      used_ += piece.size();
      return true;
    });
  }
  v1::SharedPayload payload;
  *payload.mutable_file() = ToProto(memory_->file());
  payload.set_offset(SharedMemory::kHeaderSize + place->second);
  return payload;
}

}  // namespace lockstep::strategy
