#include "strategy/workers/shared_inbox.h"

#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/wire/shared_memory_codec.h"

namespace lockstep::strategy {
std::vector<int> SharedInbox::members() const {
  MutexLock lock(mutex_);
  std::vector<int> members;
  for (const auto& [rank, mapped] : mapped_) {
    if (mapped.memory != nullptr) members.push_back(rank);
  }
  return members;
}

absl::Status SharedInbox::Read(const v1::ParcelHeader& header,
                               ParcelReader& reader) {
  const int rank = header.sender().rank();
  const SharedFile file = FromProto(header.shared().file());
  std::shared_ptr<const PeerMemory> memory;
  {
    MutexLock lock(mutex_);
    Mapped& known = mapped_[rank];
    if (known.memory == nullptr || !(known.named == file)) {
      // The older file was smaller, or is that of an earlier process.
      known = Mapped();
      absl::StatusOr<std::shared_ptr<const PeerMemory>> mapped =
          PeerMemory::Open(file, PeerMemory::Require::kSealed);
      if (!mapped.ok()) {
        if (unshared_.Take(Clock::Real().Now())) {
          spdlog::info("shares no memory with rank {}: {}", rank,
                       std::string(mapped.status().message()));
        }
        return absl::NotFoundError(absl::StrCat(
            "cannot map the sender's memory: ", mapped.status().message()));
      }
      known = {file, *std::move(mapped)};
    }
    memory = known.memory;
  }
  const uint64_t offset = header.shared().offset();
  if (!memory->Holds(offset, reader.missing())) {
    return absl::InvalidArgumentError(
        absl::StrCat("a payload of ", reader.missing(), " bytes at ", offset,
                     " is not in the memory of rank ", rank, ", which has ",
                     memory->bytes().size()));
  }
  return reader.Append(std::string_view(
      reinterpret_cast<const char*>(memory->bytes().data()) + offset,
      reader.missing()));
}

}  // namespace lockstep::strategy
