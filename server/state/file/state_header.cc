#include "server/state/file/state_header.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace lockstep::server {
namespace {

constexpr std::array<char, 8> kMagic = {'L', 'O', 'C', 'K', 'S', 'T', 'E', 'P'};

// In native byte order: the file never leaves its machine.
struct RawHeader {
  std::array<char, 8> magic = {};
  uint32_t version = 0;
  int32_t task_index = 0;
  uint64_t layout_hash = 0;
  uint64_t file_size = 0;
  std::array<char, 104> job_id = {};  // padded with zeros
  uint32_t checksum = 0;              // CRC-32 of all before
  uint32_t reserved = 0;
};
static_assert(std::is_trivially_copyable_v<RawHeader>);
static_assert(sizeof(RawHeader) <= StateHeader::kSize);
static_assert(StateHeader::kMaxJobIdLength < sizeof(RawHeader::job_id));

uint32_t Checksum(const RawHeader& raw) {
  std::array<unsigned char, offsetof(RawHeader, checksum)> bytes;
  // A copy, since zlib takes unsigned char.
  std::memcpy(bytes.data(), &raw, bytes.size());
  return static_cast<uint32_t>(crc32(0, bytes.data(), bytes.size()));
}

absl::Status Foreign(absl::string_view field, const absl::AlphaNum& found,
                     const absl::AlphaNum& expected) {
  return absl::FailedPreconditionError(
      absl::StrCat("state file is of ", field, " ", found, ", not ", expected,
                   "; remove it or give this server another --state_dir"));
}

}  // namespace

absl::Status ValidateJobId(absl::string_view job_id) {
  // The id is part of a file name, so it must not lead out of the directory.
  const auto is_allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
           c == '_' || c == '.';
  };
  if (!job_id.empty() && job_id.size() <= StateHeader::kMaxJobIdLength &&
      absl::ascii_isalnum(static_cast<unsigned char>(job_id[0])) &&
      std::all_of(job_id.begin(), job_id.end(), is_allowed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "job_id of ", job_id.size(), " bytes: it must have 1 to ",
      StateHeader::kMaxJobIdLength,
      " letters, digits, '-', '_' and '.', and start with a letter or digit"));
}

void EncodeStateHeader(const StateHeader& header, absl::Span<std::byte> out) {
  RawHeader raw;
  raw.magic = kMagic;
  raw.version = StateHeader::kVersion;
  raw.task_index = header.task_index;
  raw.layout_hash = header.layout_hash;
  raw.file_size = header.file_size;
  // The rest stays 0, so that the id ends.
  std::copy_n(header.job_id.begin(),
              std::min(header.job_id.size(), StateHeader::kMaxJobIdLength),
              raw.job_id.begin());
  raw.checksum = Checksum(raw);
  std::memcpy(out.data(), &raw, sizeof(raw));
}

absl::StatusOr<StateHeader> DecodeStateHeader(
    absl::Span<const std::byte> bytes) {
  RawHeader raw;
  if (bytes.size() < StateHeader::kSize) {
    return absl::DataLossError(
        absl::StrCat("state file header has ", bytes.size(), " of ",
                     StateHeader::kSize, " bytes; remove the file"));
  }
  std::memcpy(&raw, bytes.data(), sizeof(raw));
  if (raw.magic != kMagic) {
    return absl::DataLossError("not a state file; remove it");
  }
  // Before the checksum, whose place another version may have moved.
  if (raw.version != StateHeader::kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("state file has version ", raw.version,
                     ", this program needs ", StateHeader::kVersion,
                     "; remove it and restore the job from a checkpoint"));
  }
  // The last byte of the job id must be 0: it is read as a C string below.
  if (raw.checksum != Checksum(raw) || raw.job_id.back() != 0) {
    return absl::DataLossError("state file header is damaged; remove the file");
  }
  return StateHeader{raw.job_id.data(), raw.task_index, raw.layout_hash,
                     raw.file_size};
}

absl::Status CheckStateHeader(const StateHeader& found,
                              const StateHeader& expected) {
  if (found.job_id != expected.job_id) {
    return Foreign("job", found.job_id, expected.job_id);
  }
  if (found.task_index != expected.task_index) {
    return Foreign("ps task", found.task_index, expected.task_index);
  }
  if (found.layout_hash != expected.layout_hash) {
    return Foreign("layout", absl::Hex(found.layout_hash),
                   absl::Hex(expected.layout_hash));
  }
  if (found.file_size != expected.file_size) {
    return Foreign("size", found.file_size, expected.file_size);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::server
