#include "worker/data/idx_file.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/data/data_file.h"

namespace lockstep::worker {
namespace {

absl::StatusOr<IdxArray> Read(const std::string& path, int64_t max_bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes,
                            ReadDataFile(path, max_bytes));
  LOCKSTEP_ASSIGN_OR_RETURN(IdxHeader header, ParseIdxHeader(bytes));
  // The header is cut off in place: a copy would double the memory.
  bytes.erase(bytes.begin(),
              bytes.begin() + static_cast<ptrdiff_t>(header.size));
  return IdxArray{std::move(header.dimensions), std::move(bytes)};
}

}  // namespace

absl::StatusOr<IdxArray> ReadIdxFile(const std::string& path,
                                     int64_t max_bytes) {
  absl::StatusOr<IdxArray> array = Read(path, max_bytes);
  if (array.ok()) return array;
  return absl::Status(array.status().code(),
                      absl::StrCat(path, ": ", array.status().message()));
}

}  // namespace lockstep::worker
