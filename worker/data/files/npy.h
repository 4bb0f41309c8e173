#ifndef LOCKSTEP_WORKER_DATA_FILES_NPY_H_
#define LOCKSTEP_WORKER_DATA_FILES_NPY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/data/files/number_array.h"

namespace lockstep::worker {

// NpyHeader is the first bytes of a NumPy file (numpy.lib.format, versions 1 to
// 3): a magic word, a version, a length, and a Python dictionary that describes
// the array.
struct NpyHeader {
  NumberType type = NumberType::kUint8;
  std::vector<int64_t> dimensions;  // 1 to 8
  size_t size = 0;  // bytes of the header; the values follow, row-major
};

// True if `bytes` begin as a NumPy file does.
bool IsNpy(absl::Span<const uint8_t> bytes);

// Reads the header and checks it against the length of the whole of `bytes`.
//
//   kInvalidArgument  no NumPy file, a version above 3, elements that are no
//                     little-endian numbers (names the type and the fix), an
//                     array in Fortran order, no dimension or more than 8
//   kDataLoss         the header or the values are cut off, or bytes follow
//                     the values
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const uint8_t> bytes);

// Returns the header of a file of version 1 with an array of this type and of
// these dimensions; the values must follow.
std::string MakeNpyHeader(NumberType type,
                          const std::vector<int64_t>& dimensions);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_FILES_NPY_H_
