#ifndef LOCKSTEP_WORKER_CLIENT_MAPPED_VALUES_H_
#define LOCKSTEP_WORKER_CLIENT_MAPPED_VALUES_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/memory/shared_memory.h"

namespace lockstep {

// MappedValues is the memory of one server of this host, as far as a worker
// reads it: values, and counters that tell whether they are still those.
//
// Threads: safe to share.
class MappedValues {
 public:
  // Maps what the server offers. Errors: those of PeerMemory::Open().
  static absl::StatusOr<MappedValues> Open(const SharedFile& values,
                                           const SharedFile& counters);

  // Copies a value of out.size() bytes.
  //
  //   kInvalidArgument  no such place
  //   kAborted          it was written to meanwhile: `out` holds anything
  absl::Status Copy(const SharedPlace& place, absl::Span<std::byte> out) const;

 private:
  MappedValues(std::shared_ptr<const PeerMemory> values,
               std::shared_ptr<const PeerMemory> counters);

  std::shared_ptr<const PeerMemory> values_;
  std::shared_ptr<const PeerMemory> counters_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_CLIENT_MAPPED_VALUES_H_
