#include "worker/data/files/array_file.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/data/files/idx.h"
#include "worker/data/files/npy.h"
#include "worker/data/files/npz.h"

namespace lockstep::worker {
namespace {

constexpr char kArchive[] = ".npz:";

// Removes the header in place: a copy would double the memory.
std::vector<uint8_t> Without(size_t header, std::vector<uint8_t> bytes) {
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(header));
  return bytes;
}

std::string Beginning(const std::vector<uint8_t>& bytes) {
  if (bytes.size() < 2) return absl::StrCat("it has ", bytes.size(), " bytes");
  return absl::StrCat("it begins with 0x", absl::Hex(bytes[0], absl::kZeroPad2),
                      " 0x", absl::Hex(bytes[1], absl::kZeroPad2));
}

absl::StatusOr<NumberArray> Parse(std::vector<uint8_t> bytes) {
  if (IsNpy(bytes)) {
    LOCKSTEP_ASSIGN_OR_RETURN(NpyHeader header, ParseNpyHeader(bytes));
    return NumberArray{header.type, std::move(header.dimensions),
                       Without(header.size, std::move(bytes))};
  }
  if (bytes.size() < 2 || bytes[0] != 0 || bytes[1] != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("neither IDX nor .npy nor .npz data: ", Beginning(bytes),
                     "; is the file cut off, or of another kind?"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(IdxHeader header, ParseIdxHeader(bytes));
  return NumberArray{NumberType::kUint8, std::move(header.dimensions),
                     Without(header.size, std::move(bytes))};
}

absl::StatusOr<NumberArray> Read(const std::string& path, int64_t max_bytes) {
  const ArrayPath split = SplitArrayPath(path);
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes,
                            ReadDataFile(split.file, max_bytes));
  // By the contents, not by the name: a path may have any ending.
  if (!IsZip(bytes)) return Parse(std::move(bytes));
  LOCKSTEP_ASSIGN_OR_RETURN(bytes,
                            ReadNpzMember(bytes, split.array, max_bytes));
  return Parse(std::move(bytes));
}

}  // namespace

ArrayPath SplitArrayPath(const std::string& path) {
  const size_t at = path.rfind(kArchive);
  if (at == std::string::npos) return {path, ""};
  // kArchive ends with the colon; its size counts the terminating zero.
  const size_t colon = at + sizeof(kArchive) - 2;
  return {path.substr(0, colon), path.substr(colon + 1)};
}

absl::StatusOr<NumberArray> ReadArrayFile(const std::string& path,
                                          int64_t max_bytes) {
  absl::StatusOr<NumberArray> array = Read(path, max_bytes);
  if (array.ok()) return array;
  return absl::Status(array.status().code(),
                      absl::StrCat(path, ": ", array.status().message()));
}

}  // namespace lockstep::worker
