#include "worker/data/files/idx.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr size_t kMagicSize = 4;
constexpr size_t kDimensionSize = 4;
constexpr size_t kMaxDimensions = 4;
// The header is 0, 0, element type, number of dimensions; then each dimension
// as a big-endian 32-bit number.
constexpr uint8_t kUnsignedByte = 0x08;

int64_t ReadBigEndian32(absl::Span<const uint8_t> bytes) {
  return (int64_t{bytes[0]} << 24) | (int64_t{bytes[1]} << 16) |
         (int64_t{bytes[2]} << 8) | int64_t{bytes[3]};
}

// All types of the format; only unsigned bytes are read.
const char* TypeName(uint8_t type) {
  switch (type) {
    case 0x09:
      return "signed byte";
    case 0x0b:
      return "16-bit integer";
    case 0x0c:
      return "32-bit integer";
    case 0x0d:
      return "float";
    case 0x0e:
      return "double";
    default:
      return "no type of this format";
  }
}

absl::Status CheckMagic(absl::Span<const uint8_t> bytes) {
  if (bytes.size() < kMagicSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("not IDX data: ", bytes.size(),
                     " bytes, where the header has at least 4"));
  }
  if (bytes[0] != 0 || bytes[1] != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "not IDX data: begins with 0x", absl::Hex(bytes[0], absl::kZeroPad2),
        " 0x", absl::Hex(bytes[1], absl::kZeroPad2), ", not two zeros"));
  }
  if (bytes[2] != kUnsignedByte) {
    return absl::InvalidArgumentError(absl::StrCat(
        "IDX element type 0x", absl::Hex(bytes[2], absl::kZeroPad2), " (",
        TypeName(bytes[2]), ") is not supported; write 0x08 (unsigned byte)"));
  }
  if (bytes[3] < 1 || bytes[3] > kMaxDimensions) {
    return absl::InvalidArgumentError(
        absl::StrCat("IDX data has ", static_cast<int>(bytes[3]),
                     " dimensions; 1 to ", kMaxDimensions, " are supported"));
  }
  return absl::OkStatus();
}

absl::Status WrongSize(const IdxHeader& header, absl::string_view expected,
                       size_t found) {
  return absl::DataLossError(
      absl::StrCat("IDX dimensions ", absl::StrJoin(header.dimensions, " x "),
                   " need ", expected, " bytes of values, but ", found,
                   " follow the header; fetch the file again"));
}

absl::Status CheckLength(const IdxHeader& header, size_t total) {
  const size_t found = total - header.size;
  uint64_t expected = 1;
  for (int64_t dimension : header.dimensions) {
    const uint64_t size = static_cast<uint64_t>(dimension);
    // Four dimensions of 32 bits can overflow 64.
    if (size != 0 && expected > std::numeric_limits<uint64_t>::max() / size) {
      return WrongSize(header, "more than 2^64", found);
    }
    expected *= size;
  }
  if (expected == found) return absl::OkStatus();
  return WrongSize(header, absl::StrCat(expected), found);
}

}  // namespace

absl::StatusOr<IdxHeader> ParseIdxHeader(absl::Span<const uint8_t> bytes) {
  LOCKSTEP_RETURN_IF_ERROR(CheckMagic(bytes));
  IdxHeader header;
  // At most kMaxDimensions, as CheckMagic() has checked.
  header.size = kMagicSize + kDimensionSize * bytes[3];
  if (bytes.size() < header.size) {
    return absl::DataLossError(
        absl::StrCat("IDX data is truncated: the header alone has ",
                     header.size, " bytes, but ", bytes.size(), " are there"));
  }
  for (size_t at = kMagicSize; at < header.size; at += kDimensionSize) {
    header.dimensions.push_back(ReadBigEndian32(bytes.subspan(at)));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckLength(header, bytes.size()));
  return header;
}

}  // namespace lockstep::worker
