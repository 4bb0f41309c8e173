#ifndef LOCKSTEP_WORKER_DATA_FILES_ARRAY_FILE_H_
#define LOCKSTEP_WORKER_DATA_FILES_ARRAY_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/data/files/data_file.h"
#include "worker/data/files/number_array.h"

namespace lockstep::worker {

// ArrayPath is the place of an array: a file, and for a NumPy archive the array
// in it.
struct ArrayPath {
  std::string file;
  std::string array;  // empty: the only one
};

// Splits "FILE.npz:NAME" into its two parts. Any other path is a file.
ArrayPath SplitArrayPath(const std::string& path);

// Reads an array of numbers: an IDX file or a NumPy .npy file, either gzipped
// or not, or an array of a NumPy .npz file. The first bytes decide the format,
// not the name. Every error names `path`.
//
//   errors of ReadDataFile(), ParseIdxHeader(), ParseNpyHeader() and
//   ReadNpzMember()
absl::StatusOr<NumberArray> ReadArrayFile(
    const std::string& path, int64_t max_bytes = kMaxDataFileBytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_FILES_ARRAY_FILE_H_
