#ifndef LOCKSTEP_WORKER_DATA_TEXT_H_
#define LOCKSTEP_WORKER_DATA_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/data/batch.h"

namespace lockstep::worker {

// Text is bytes cut into consecutive examples of `length`. The bytes that fill
// no example at the end are left out.
//
// Threads: immutable.
struct Text {
  static constexpr int64_t kTokens = 256;  // a byte is a token

  std::vector<uint8_t> bytes;
  int64_t length = 0;

  // The label of an example's last token is the next example's first byte,
  // hence the - 1.
  int64_t num_examples() const {
    return (static_cast<int64_t>(bytes.size()) - 1) / length;
  }
};

// Returns the bytes, to be cut into examples of `length`.
//
//   kInvalidArgument  `length` below 1, or fewer than length + 1 bytes
absl::StatusOr<Text> MakeText(std::vector<uint8_t> bytes, int64_t length);

// Reads a file, plain or gzipped. Every error names `path`.
//
//   kNotFound, kPermissionDenied  as the system says
//   kInvalidArgument              as MakeText(), or no regular file
//   kResourceExhausted            more than 4 GiB
absl::StatusOr<Text> LoadText(const std::string& path, int64_t length);

// Returns the examples `ids` of `text`: tokens, and as labels the byte after
// each.
//
//   kInvalidArgument  an id outside [0, num_examples)
absl::StatusOr<Batch> LoadTextBatch(const Text& text,
                                    absl::Span<const int64_t> ids);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_TEXT_H_
