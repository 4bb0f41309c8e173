#include "worker/client/mapped_values.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/memory/write_counters.h"
#include "common/numeric/stream_copy.h"

namespace lockstep::worker {
namespace {

void CopyBytes(std::byte* to, const std::byte* from, size_t size) {
  if (size < kStreamFrom) {
    std::memcpy(to, from, size);
  } else {
    StreamCopy(size, from, to);
    FinishStreaming();
  }
}

}  // namespace

absl::StatusOr<MappedValues> MappedValues::Open(const SharedFile& values,
                                                const SharedFile& counters) {
  // The counters' proof is random: if that is right, so is the process.
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<const PeerMemory> opened_counters,
      PeerMemory::Open(counters, PeerMemory::Require::kSealed));
  if (counters.pid != values.pid) {
    return absl::InvalidArgumentError(absl::StrCat(
        "values are of process ", values.pid, ", counters of ", counters.pid));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<const PeerMemory> opened_values,
      PeerMemory::Open(values, PeerMemory::Require::kAnyFile));
  return MappedValues(std::move(opened_values), std::move(opened_counters));
}

MappedValues::MappedValues(std::shared_ptr<const PeerMemory> values,
                           std::shared_ptr<const PeerMemory> counters)
    : values_(std::move(values)), counters_(std::move(counters)) {}

absl::Status MappedValues::Copy(const SharedPlace& place,
                                absl::Span<std::byte> out) const {
  if (!values_->Holds(place.offset, out.size()) ||
      !HasCounter(*counters_, place.counter)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a value of ", out.size(), " bytes at ", place.offset, " with counter ",
        place.counter, " is not in the server's memory"));
  }
  CopyBytes(out.data(), values_->bytes().data() + place.offset, out.size());
  if (!WrittenSince(*counters_, place.counter, place.writes)) {
    return absl::OkStatus();
  }
  return absl::AbortedError("the server wrote there meanwhile");
}

}  // namespace lockstep::worker
