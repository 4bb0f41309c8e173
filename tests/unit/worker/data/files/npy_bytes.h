#ifndef LOCKSTEP_TESTS_UNIT_WORKER_DATA_FILES_NPY_BYTES_H_
#define LOCKSTEP_TESTS_UNIT_WORKER_DATA_FILES_NPY_BYTES_H_

#include <zip.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/data/files/idx_bytes.h"

// Builds small files as NumPy writes them.
namespace lockstep::testing {

// A file of version `version` whose header is `text`.
inline Bytes NpyBytes(absl::string_view text, const Bytes& values,
                      uint8_t version = 1) {
  Bytes bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', version, 0};
  const size_t length_bytes = version == 1 ? 2 : 4;
  for (size_t i = 0; i < length_bytes; ++i) {
    bytes.push_back(static_cast<uint8_t>(text.size() >> (8 * i)));
  }
  bytes.insert(bytes.end(), text.begin(), text.end());
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

// The header that NumPy writes of an array in C order.
inline std::string NpyText(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape +
         ", }      \n";
}

// An archive with these members, compressed as savez_compressed() does.
inline Bytes NpzBytes(
    const std::vector<std::pair<std::string, Bytes>>& members) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_source_keep(target);
  zip_t* archive = zip_open_from_source(target, ZIP_TRUNCATE, &error);
  for (const auto& [name, bytes] : members) {
    zip_source_t* source =
        zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
    EXPECT_GE(zip_file_add(archive, name.c_str(), source, 0), 0);
  }
  EXPECT_EQ(zip_close(archive), 0);
  zip_stat_t info;
  zip_source_stat(target, &info);
  Bytes out(info.size);
  zip_source_open(target);
  EXPECT_EQ(zip_source_read(target, out.data(), out.size()),
            static_cast<zip_int64_t>(out.size()));
  zip_source_close(target);
  zip_source_free(target);
  zip_error_fini(&error);
  return out;
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_WORKER_DATA_FILES_NPY_BYTES_H_
