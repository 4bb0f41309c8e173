#ifndef LOCKSTEP_WORKER_CLIENT_MAPPED_VALUES_H_
#define LOCKSTEP_WORKER_CLIENT_MAPPED_VALUES_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/memory/shared_memory.h"

namespace lockstep::worker {

// MappedValues maps the memory of one server of this host for reading: the
// values of variables, and counters that show whether they were overwritten.
//
// Threads: safe to share.
class MappedValues {
 public:
  // Maps the server's files. Errors: those of PeerMemory::Open().
  static absl::StatusOr<MappedValues> Open(const SharedFile& values,
                                           const SharedFile& counters);

  // Copies the out.size() bytes at `place` to `out`.
  //
  //   kInvalidArgument  the place is not within the files
  //   kAborted          the server wrote to the place since it named it, or has
  //                     ended; the contents of `out` are undefined
  absl::Status Copy(const SharedPlace& place, absl::Span<std::byte> out) const;

 private:
  // A descriptor of the server's process, which shows whether it has ended.
  class Holder;

  MappedValues(std::shared_ptr<const PeerMemory> values,
               std::shared_ptr<const PeerMemory> counters,
               std::shared_ptr<const Holder> holder);

  std::shared_ptr<const PeerMemory> values_;
  std::shared_ptr<const PeerMemory> counters_;
  std::shared_ptr<const Holder> holder_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_MAPPED_VALUES_H_
