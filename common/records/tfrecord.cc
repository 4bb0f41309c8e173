#include "common/records/tfrecord.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kCrcSize = 4;
constexpr size_t kLengthSize = 8;
constexpr uint32_t kMask = 0xa282ead8;

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      // Castagnoli's polynomial with its bits reversed.
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    }
    table[byte] = crc;
  }
  return table;
}

uint64_t LittleEndian(absl::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i > 0; --i) {
    number = (number << 8) | static_cast<uint8_t>(bytes[i - 1]);
  }
  return number;
}

// Returns `number` in `size` bytes, the lowest byte first.
std::string ToLittleEndian(uint64_t number, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) {
    bytes.push_back(static_cast<char>(number >> (8 * i)));
  }
  return bytes;
}

}  // namespace

uint32_t Crc32c(absl::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = MakeTable();
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  }
  return ~crc;
}

uint32_t MaskedCrc32c(absl::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  // TensorFlow's masking: rotated right by 15 bits, plus kMask.
  return ((crc >> 15) | (crc << 17)) + kMask;
}

void AppendTfRecord(absl::string_view record, std::string& file) {
  const std::string length = ToLittleEndian(record.size(), kLengthSize);
  absl::StrAppend(&file, length, ToLittleEndian(MaskedCrc32c(length), kCrcSize),
                  record, ToLittleEndian(MaskedCrc32c(record), kCrcSize));
}

absl::StatusOr<absl::string_view> TfRecordReader::Checked(uint64_t size,
                                                          const char* what) {
  const size_t left = bytes_.size() - at_;
  // `size` may be any number of a damaged file, so size + kCrcSize could
  // overflow.
  if (left < kCrcSize || size > left - kCrcSize) {
    return absl::DataLossError(
        absl::StrCat("the ", what, " at byte ", at_, " should have ", size,
                     " bytes and a check, but the file ends after ", left));
  }
  const absl::string_view checked = bytes_.substr(at_, size);
  const uint64_t stored = LittleEndian(bytes_.substr(at_ + size, kCrcSize));
  if (stored != MaskedCrc32c(checked)) {
    return absl::DataLossError(
        absl::StrCat("the check of the ", what, " at byte ", at_,
                     " is wrong: the file is damaged, or no TFRecord file"));
  }
  at_ += size + kCrcSize;
  return checked;
}

absl::StatusOr<std::optional<absl::string_view>> TfRecordReader::Next() {
  if (at_ == bytes_.size()) return std::nullopt;
  LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view length,
                            Checked(kLengthSize, "length"));
  LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view record,
                            Checked(LittleEndian(length), "record"));
  return record;
}

}  // namespace lockstep
