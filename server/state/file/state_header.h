#ifndef LOCKSTEP_SERVER_STATE_FILE_STATE_HEADER_H_
#define LOCKSTEP_SERVER_STATE_FILE_STATE_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lockstep::server {

// StateHeader identifies the owner of the state in a file. It never changes
// after the file was made.
struct StateHeader {
  static constexpr uint32_t kVersion = 4;
  static constexpr size_t kSize = 256;            // bytes
  static constexpr size_t kMaxJobIdLength = 100;  // bytes

  std::string job_id;
  int32_t task_index = 0;    // of the ps task
  uint64_t layout_hash = 0;  // of variables, parts, slots and buffers
  uint64_t file_size = 0;    // bytes

  bool operator==(const StateHeader&) const = default;
};

// Checks that `job_id` can be part of a file name.
//
//   kInvalidArgument  empty, longer than kMaxJobIdLength, a first character
//                     that is no letter or digit, or a character that is no
//                     letter, digit, '-', '_' or '.'
absl::Status ValidateJobId(absl::string_view job_id);

// Writes kSize bytes. `header.job_id` is valid.
void EncodeStateHeader(const StateHeader& header, absl::Span<std::byte> out);

// Decodes a header.
//
//   kDataLoss            too short, no state file, or damaged
//   kFailedPrecondition  written by another version of this program
absl::StatusOr<StateHeader> DecodeStateHeader(
    absl::Span<const std::byte> bytes);

// Checks that a file is the expected one.
//
//   kFailedPrecondition  another job, task, layout or size; says which
absl::Status CheckStateHeader(const StateHeader& found,
                              const StateHeader& expected);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_FILE_STATE_HEADER_H_
