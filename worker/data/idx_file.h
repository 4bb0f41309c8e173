#ifndef LOCKSTEP_WORKER_DATA_IDX_FILE_H_
#define LOCKSTEP_WORKER_DATA_IDX_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/data/idx.h"

namespace lockstep::worker {

// No IDX file may be, or decompress to, more than 4 GiB.
inline constexpr int64_t kMaxIdxFileBytes = int64_t{1} << 32;

// Reads an IDX file, plain or gzipped: its first bytes tell which. Every error
// names `path`.
//
//   kNotFound            no such file; for a known data set, names its package
//   kPermissionDenied    the file may not be read
//   kInvalidArgument     not a regular file, or not IDX data of unsigned bytes
//   kDataLoss            truncated, damaged, or followed by other bytes
//   kResourceExhausted   more than `max_bytes`, plain or decompressed
absl::StatusOr<IdxArray> ReadIdxFile(const std::string& path,
                                     int64_t max_bytes = kMaxIdxFileBytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_IDX_FILE_H_
