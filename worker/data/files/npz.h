#ifndef LOCKSTEP_WORKER_DATA_FILES_NPZ_H_
#define LOCKSTEP_WORKER_DATA_FILES_NPZ_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lockstep::worker {

// True if `bytes` begin as a zip archive with a member does.
bool IsZip(absl::Span<const uint8_t> bytes);

// Returns the member NAME.npy of an archive that numpy.savez() or
// numpy.savez_compressed() has written, decompressed. Without a name: the only
// member.
//
//   kInvalidArgument    no zip archive
//   kNotFound           no such member, or several and no name; names the
//                       members that there are
//   kDataLoss           the member is damaged or cut off
//   kResourceExhausted  it has more than `max_bytes` decompressed
absl::StatusOr<std::vector<uint8_t>> ReadNpzMember(
    absl::Span<const uint8_t> archive, const std::string& name,
    int64_t max_bytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_FILES_NPZ_H_
