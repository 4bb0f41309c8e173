#ifndef LOCKSTEP_WORKER_DATA_FILES_GUNZIP_H_
#define LOCKSTEP_WORKER_DATA_FILES_GUNZIP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lockstep::worker {

// True if `bytes` begin as gzip data does (RFC 1952).
bool IsGzip(absl::Span<const uint8_t> bytes);

// Decompresses one or more gzip members into at most `max_bytes` bytes.
//
//   kDataLoss           truncated, damaged, or followed by other bytes
//   kResourceExhausted  more than `max_bytes` would come out
absl::StatusOr<std::vector<uint8_t>> Gunzip(absl::Span<const uint8_t> bytes,
                                            int64_t max_bytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_FILES_GUNZIP_H_
