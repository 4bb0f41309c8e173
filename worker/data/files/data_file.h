#ifndef LOCKSTEP_WORKER_DATA_FILES_DATA_FILE_H_
#define LOCKSTEP_WORKER_DATA_FILES_DATA_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::worker {

// No file of data may be, or decompress to, more than 4 GiB.
inline constexpr int64_t kMaxDataFileBytes = int64_t{1} << 32;

// Reads a whole file, plain or gzipped: its first bytes tell which. Errors do
// not name `path`.
//
//   kNotFound            no such file; for a known data set, names its package
//   kPermissionDenied    the file may not be read
//   kInvalidArgument     not a regular file
//   kDataLoss            gzip data that is truncated, damaged, or followed by
//                        other bytes
//   kResourceExhausted   more than `max_bytes`, plain or decompressed
absl::StatusOr<std::vector<uint8_t>> ReadDataFile(
    const std::string& path, int64_t max_bytes = kMaxDataFileBytes);

// Returns the contents as text. Errors are those of ReadDataFile() and name
// `path` first.
absl::StatusOr<std::string> ReadDataText(const std::string& path);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_FILES_DATA_FILE_H_
