#ifndef LOCKSTEP_WORKER_DATA_BATCH_H_
#define LOCKSTEP_WORKER_DATA_BATCH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::worker {

// Batch is the examples of one gradient.
struct Batch {
  std::vector<float>
      images;  // [size, height, width, channels]; bytes in [0, 1]
  std::vector<int32_t> labels;  // [size], of text [size, length]
  int64_t size = 0;             // examples
  // Text instead of images: [size, length].
  std::vector<int32_t> tokens = {};
};

// Returns batch `index` of one worker, the same one for each call. kOutOfRange:
// the end of input.
using BatchSource = std::function<absl::StatusOr<Batch>(int64_t index)>;

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_BATCH_H_
