#include "server/shard/shared_gradients.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::server {

absl::Status SharedGradients::CheckOffsets(
    const PeerMemory& memory, const std::vector<uint64_t>& offsets) const {
  if (offsets.size() != parts_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "offsets: ", offsets.size(), " given for ", parts_.size(), " parts"));
  }
  for (size_t part = 0; part < offsets.size(); ++part) {
    const auto [size, element] = parts_[part];
    // A table is not shared, so its size is 0.
    const bool misplaced = size > 0 && offsets[part] % element != 0;
    if (memory.Holds(offsets[part], size) && !misplaced) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "offsets[", part, "] is ", offsets[part], "; the part has ", size,
        " bytes, the memory ", memory.bytes().size(),
        ", and the offset must be a multiple of ", element));
  }
  return absl::OkStatus();
}

absl::Status SharedGradients::Add(int worker, uint64_t incarnation,
                                  std::shared_ptr<const PeerMemory> memory,
                                  std::vector<uint64_t> offsets) {
  // The offsets come from another process: a wrong one would make the server
  // read beyond the memory.
  LOCKSTEP_RETURN_IF_ERROR(CheckOffsets(*memory, offsets));
  MutexLock lock(mutex_);
  Entry& entry = workers_[worker];
  if (entry.incarnation > incarnation) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", worker, " with incarnation ", incarnation,
                     " has been replaced by ", entry.incarnation));
  }
  entry = {incarnation, std::move(memory), std::move(offsets)};
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PartGradient>> SharedGradients::Find(
    int worker, uint64_t incarnation, int first_part, int num_parts) const {
  MutexLock lock(mutex_);
  auto found = workers_.find(worker);
  if (found == workers_.end() || found->second.incarnation != incarnation) {
    return absl::NotFoundError(
        absl::StrCat("worker ", worker, " with incarnation ", incarnation,
                     " shares no memory with this server"));
  }
  const Entry& entry = found->second;
  std::vector<PartGradient> gradients;
  for (int part = first_part; part < first_part + num_parts; ++part) {
    const std::byte* bytes = entry.memory->bytes().data() + entry.offsets[part];
    // Each gradient keeps the mapping alive, even if the worker is removed.
    gradients.push_back({{{bytes, parts_[part].size}}, entry.memory});
  }
  return gradients;
}

void SharedGradients::Remove(int worker, uint64_t incarnation) {
  MutexLock lock(mutex_);
  auto found = workers_.find(worker);
  if (found == workers_.end() || found->second.incarnation > incarnation) {
    return;
  }
  workers_.erase(found);
}

}  // namespace lockstep::server
