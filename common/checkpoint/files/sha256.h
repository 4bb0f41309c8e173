#ifndef LOCKSTEP_COMMON_CHECKPOINT_FILES_SHA256_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FILES_SHA256_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// SHA-256 of a regular file's contents, as 64 lower-case hex digits. Reads it
// in pieces, so the length does not matter.
//
//   kInvalidArgument  not a regular file
//   kInternal         OpenSSL offers no SHA-256 here
//   and the errors of PosixFile
absl::StatusOr<std::string> Sha256OfFile(const std::string& path);

// True for exactly 64 lower-case hex digits.
bool IsSha256Hex(absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FILES_SHA256_H_
