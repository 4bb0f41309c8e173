#include "server/mirror/mapped_means.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace lockstep::server {
namespace {

// MeanMemory places means so; kernels need at least whole elements.
constexpr uint64_t kAlignment = 64;

}  // namespace

bool MappedMeans::Maps(int server) const {
  MutexLock lock(mutex_);
  return servers_[server].means != nullptr;
}

bool MappedMeans::MayMap(int server) const {
  MutexLock lock(mutex_);
  return !servers_[server].refused;
}

void MappedMeans::OnServerGone(int server) {
  MutexLock lock(mutex_);
  servers_[server].refused = false;
}

absl::StatusOr<MappedMeans::Server> MappedMeans::Map(int server,
                                                     const SharedMeans& means) {
  MutexLock lock(mutex_);
  Server& known = servers_[server];
  // A server that was started again, or was given another job, has other files.
  if (known.means != nullptr && known.named == means.means) {
    return known;
  }
  absl::StatusOr<std::shared_ptr<const PeerMemory>> bytes =
      PeerMemory::Open(means.means, PeerMemory::Require::kSealed);
  absl::StatusOr<std::shared_ptr<const PeerMemory>> counters =
      PeerMemory::Open(means.counters, PeerMemory::Require::kSealed);
  if (!bytes.ok() || !counters.ok()) {
    const absl::Status why = bytes.ok() ? counters.status() : bytes.status();
    spdlog::info("shares no memory with ps {}: {}", server,
                 std::string(why.message()));
    known = Server();
    known.refused = true;
    return absl::UnavailableError(
        absl::StrCat("cannot map its memory: ", why.message()));
  }
  spdlog::info("reads the means of ps {} in its memory", server);
  known = Server();
  known.named = means.means;
  known.means = *std::move(bytes);
  known.counters = *std::move(counters);
  return known;
}

absl::StatusOr<std::vector<PartGradient>> MappedMeans::Read(
    int server, const SharedMeans& means) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Server mapped, Map(server, means));
  std::vector<PartGradient> read;
  for (const SharedMeans::Mean& mean : means.parts) {
    PartGradient& gradient = read.emplace_back();
    if (mean.size == 0) {
      gradient.absent = true;
      continue;
    }
    const SharedPlace& place = mean.place;
    // The numbers are the other server's: a wrong one must not lead outside of
    // the mapping.
    if (!mapped.means->Holds(place.offset, mean.size) ||
        place.offset % kAlignment != 0 ||
        !HasCounter(*mapped.counters, place.counter)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a mean of ", mean.size, " bytes at ", place.offset, " with counter ",
          place.counter, " is not in the memory of ps ", server));
    }
    gradient.slices = {
        {mapped.means->bytes().data() + place.offset, mean.size}};
    gradient.owner = mapped.means;
    gradient.peer_writes =
        PeerWrites{mapped.counters, place.counter, place.writes};
  }
  return read;
}

}  // namespace lockstep::server
