#ifndef LOCKSTEP_TESTS_TESTING_APPEND_TFRECORD_H_
#define LOCKSTEP_TESTS_TESTING_APPEND_TFRECORD_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/records/tfrecord.h"

namespace lockstep::testing {

// `number` in `size` bytes, the low ones first.
inline std::string ToLittleEndian(uint64_t number, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) {
    bytes.push_back(static_cast<char>(number >> (8 * i)));
  }
  return bytes;
}

// Adds a record to the bytes of a TFRecord file.
inline void AppendTfRecord(absl::string_view record, std::string& file) {
  const std::string length = ToLittleEndian(record.size(), 8);
  absl::StrAppend(&file, length, ToLittleEndian(MaskedCrc32c(length), 4),
                  record, ToLittleEndian(MaskedCrc32c(record), 4));
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_APPEND_TFRECORD_H_
