#include "worker/client/mapped_values.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

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

class MappedValues::Holder {
 public:
  explicit Holder(int64_t pid)
      : fd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  ~Holder() {
    if (fd_ >= 0) close(fd_);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  // False also where the system has no such descriptors.
  bool HasEnded() const {
    pollfd ended = {fd_, POLLIN, 0};
    return fd_ >= 0 && poll(&ended, 1, 0) > 0;
  }

 private:
  const int fd_;
};

absl::StatusOr<MappedValues> MappedValues::Open(const SharedFile& values,
                                                const SharedFile& counters) {
  // Before the files: a process that ends in between must count as ended.
  auto holder = std::make_shared<const Holder>(counters.pid);
  // The counters' file has a random proof. If that matches, the pid belongs to
  // the process that made the file, and not to a later one with the same
  // number.
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
  return MappedValues(std::move(opened_values), std::move(opened_counters),
                      std::move(holder));
}

MappedValues::MappedValues(std::shared_ptr<const PeerMemory> values,
                           std::shared_ptr<const PeerMemory> counters,
                           std::shared_ptr<const Holder> holder)
    : values_(std::move(values)),
      counters_(std::move(counters)),
      holder_(std::move(holder)) {}

absl::Status MappedValues::Copy(const SharedPlace& place,
                                absl::Span<std::byte> out) const {
  if (!values_->Holds(place.offset, out.size()) ||
      !HasCounter(*counters_, place.counter)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a value of ", out.size(), " bytes at ", place.offset, " with counter ",
        place.counter, " is not in the server's memory"));
  }
  // The server writes without a lock. The copy counts only if the counter shows
  // no write since the server named the place.
  CopyBytes(out.data(), values_->bytes().data() + place.offset, out.size());
  if (WrittenSince(*counters_, place.counter, place.writes)) {
    return absl::AbortedError("the server wrote there meanwhile");
  }
  // The next process of the server goes on in the same file of values, with
  // counters of its own.
  if (holder_->HasEnded()) return absl::AbortedError("the server has ended");
  return absl::OkStatus();
}

}  // namespace lockstep::worker
