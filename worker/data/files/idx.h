#ifndef LOCKSTEP_WORKER_DATA_FILES_IDX_H_
#define LOCKSTEP_WORKER_DATA_FILES_IDX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lockstep::worker {

// IdxHeader is the first bytes of an IDX file: two zeros, the element type, the
// number of dimensions, then each dimension as a big-endian 32-bit number. The
// values follow, unsigned bytes in row-major order.
struct IdxHeader {
  std::vector<int64_t> dimensions;  // 1 to 4
  size_t size = 0;                  // bytes of the header
};

// Reads the header and checks it against the length of the whole of `bytes`.
//
//   kInvalidArgument  no IDX data, another element type than unsigned byte
//                     (0x08), or a number of dimensions outside 1 to 4
//   kDataLoss         the dimensions ask for more or fewer values than follow
absl::StatusOr<IdxHeader> ParseIdxHeader(absl::Span<const uint8_t> bytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_FILES_IDX_H_
