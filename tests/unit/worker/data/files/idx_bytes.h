#ifndef LOCKSTEP_TESTS_UNIT_WORKER_DATA_FILES_IDX_BYTES_H_
#define LOCKSTEP_TESTS_UNIT_WORKER_DATA_FILES_IDX_BYTES_H_

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

// Builds the small files that the tests of this folder read.
namespace lockstep::testing {

using Bytes = std::vector<uint8_t>;

// IDX data of element type `type`; `values` need not fit `dimensions`.
inline Bytes IdxBytes(const std::vector<uint32_t>& dimensions,
                      const Bytes& values, uint8_t type = 0x08) {
  Bytes bytes = {0, 0, type, static_cast<uint8_t>(dimensions.size())};
  for (uint32_t dimension : dimensions) {
    for (int shift : {24, 16, 8, 0}) {
      bytes.push_back(static_cast<uint8_t>(dimension >> shift));
    }
  }
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

// One gzip member that holds `bytes`.
inline Bytes Gzip(Bytes bytes) {
  z_stream stream = {};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8,
               Z_DEFAULT_STRATEGY);
  Bytes out(deflateBound(&stream, bytes.size()));
  stream.next_in = bytes.data();
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline void WriteFile(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_WORKER_DATA_FILES_IDX_BYTES_H_
