#include "common/checkpoint/format/safetensors_file.h"

#include <unistd.h>

#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

// Elements are sent and stored in memory order, and the format requires
// little-endian.
static_assert(std::endian::native == std::endian::little);

namespace lockstep {
namespace {

TensorIndex IndexByName(const SafetensorsHeader& header) {
  TensorIndex index;
  for (const StoredTensor& tensor : header.tensors) {
    index.emplace(tensor.name, index.size());
  }
  return index;
}

absl::StatusOr<size_t> Lookup(const TensorIndex& index, absl::string_view name,
                              const std::string& path) {
  const auto found = index.find(name);
  if (found != index.end()) return found->second;
  return absl::NotFoundError(
      absl::StrCat(path, ": has no tensor \"", name, "\""));
}

absl::Status CheckRange(const StoredTensor& tensor, uint64_t offset,
                        uint64_t size, const std::string& path) {
  // Not offset + size <= bytes: the sum could overflow.
  if (offset <= tensor.bytes && size <= tensor.bytes - offset) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(absl::StrCat(
      path, ": ", DescribeTensor(tensor), " has ", tensor.bytes, " bytes, ",
      size, " at byte ", offset, " are beyond its end"));
}

absl::Status CheckReadable(const StoredTensor& tensor,
                           const std::string& path) {
  if (IsReadable(tensor.type)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": ", DescribeTensor(tensor), ": dtype ",
      TensorTypeName(tensor.type),
      " is not supported; store it as F16, BF16, F32, F64 or I64"));
}

absl::StatusOr<SafetensorsHeader> ReadHeader(const PosixFile& file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  // First the length field alone: only a checked length may decide how much
  // memory the header gets.
  std::string start(std::min<uint64_t>(size, kSafetensorsLengthBytes), '\0');
  LOCKSTEP_RETURN_IF_ERROR(file.ReadAt(0, absl::MakeSpan(start)));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t data_start,
                            SafetensorsDataStart(start, size));
  start.resize(data_start);
  LOCKSTEP_RETURN_IF_ERROR(file.ReadAt(0, absl::MakeSpan(start)));
  return ParseSafetensorsHeader(start, size);
}

absl::Status Prepare(const PosixFile& file,
                     const BuiltSafetensorsHeader& built) {
  const SafetensorsHeader& header = built.header;
  // Reserved before the first write, so a full disk is noticed now and not in
  // the middle of a checkpoint.
  LOCKSTEP_RETURN_IF_ERROR(file.Reserve(header.data_start + header.data_bytes));
  return file.WriteAt(0, built.bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    const std::string& path, std::vector<TensorSpec> tensors,
    const std::map<std::string, std::string>& metadata) {
  return Make(path, std::move(tensors), metadata, /*named=*/true);
}

absl::StatusOr<std::unique_ptr<SafetensorsWriter>>
SafetensorsWriter::CreateUnnamed(const std::string& directory,
                                 std::vector<TensorSpec> tensors) {
  return Make(directory, std::move(tensors), {}, /*named=*/false);
}

absl::StatusOr<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Make(
    const std::string& path, std::vector<TensorSpec> tensors,
    const std::map<std::string, std::string>& metadata, bool named) {
  absl::StatusOr<BuiltSafetensorsHeader> built =
      BuildSafetensorsHeader(std::move(tensors), metadata);
  if (!built.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", built.status().message()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      PosixFile file,
      named ? PosixFile::CreateNew(path) : PosixFile::CreateUnnamed(path));
  absl::Status prepared = Prepare(file, *built);
  if (!prepared.ok()) {
    if (named) unlink(path.c_str());
    return prepared;
  }
  return std::unique_ptr<SafetensorsWriter>(
      new SafetensorsWriter(std::move(file), std::move(built->header), named));
}

SafetensorsWriter::SafetensorsWriter(PosixFile file, SafetensorsHeader header,
                                     bool named)
    : file_(std::move(file)),
      header_(std::move(header)),
      index_(IndexByName(header_)),
      named_(named),
      written_(header_.tensors.size()) {}

SafetensorsWriter::~SafetensorsWriter() {
  MutexLock lock(mutex_);
  // An unfinished file has holes that read as zeros, so it must not stay.
  if (!finished_ && named_) unlink(path().c_str());
}

absl::Status SafetensorsWriter::WriteAt(absl::string_view tensor,
                                        uint64_t offset,
                                        absl::Span<const char> bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t i, Lookup(index_, tensor, path()));
  const StoredTensor& stored = header_.tensors[i];
  LOCKSTEP_RETURN_IF_ERROR(CheckRange(stored, offset, bytes.size(), path()));
  {
    MutexLock lock(mutex_);
    if (finished_) {
      return absl::FailedPreconditionError(absl::StrCat(
          path(), ": is finished, ", DescribeTensor(stored), " came too late"));
    }
  }
  // The lock is released during the write: callers write different tensors, or
  // different ranges, at the same time.
  LOCKSTEP_RETURN_IF_ERROR(
      file_.WriteAt(header_.data_start + stored.offset + offset, bytes));

  MutexLock lock(mutex_);
  // Only after the write, so that CheckComplete() counts only bytes that are in
  // the file.
  written_[i].Add(offset, offset + bytes.size());
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::WriteInt64(absl::string_view tensor,
                                           int64_t value) {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t i, Lookup(index_, tensor, path()));
  const StoredTensor& stored = header_.tensors[i];
  if (stored.type != TensorType::kI64 || !stored.shape.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path(), ": ", DescribeTensor(stored), " is not an I64 scalar"));
  }
  char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));
  return WriteAt(tensor, 0, bytes);
}

absl::Status SafetensorsWriter::CheckComplete() const {
  for (size_t i = 0; i < written_.size(); ++i) {
    const uint64_t missing = written_[i].FirstMissing();
    if (missing >= header_.tensors[i].bytes) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        path(), ": ", DescribeTensor(header_.tensors[i]), " lacks byte ",
        missing, " of ", header_.tensors[i].bytes, ": write every part first"));
  }
  return absl::OkStatus();
}

bool SafetensorsWriter::IsComplete() const {
  MutexLock lock(mutex_);
  return CheckComplete().ok();
}

absl::Status SafetensorsWriter::Finish() {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckComplete());
  LOCKSTEP_RETURN_IF_ERROR(file_.Sync());
  finished_ = true;
  return absl::OkStatus();
}

absl::StatusOr<SafetensorsReader> SafetensorsWriter::Read() const {
  LOCKSTEP_ASSIGN_OR_RETURN(PosixFile file, file_.Again());
  return SafetensorsReader::Open(std::move(file));
}

absl::StatusOr<SafetensorsReader> SafetensorsReader::Open(
    const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(PosixFile file, PosixFile::OpenForRead(path));
  return Open(std::move(file));
}

absl::StatusOr<SafetensorsReader> SafetensorsReader::Open(PosixFile file) {
  absl::StatusOr<SafetensorsHeader> header = ReadHeader(file);
  if (header.ok()) {
    return SafetensorsReader(std::move(file), *std::move(header));
  }
  // Other errors, such as a missing file, do not mean damage.
  if (!absl::IsInvalidArgument(header.status())) return header.status();
  return absl::DataLossError(
      absl::StrCat(file.path(), ": ", header.status().message(),
                   "; the file is damaged, or no safetensors file: use another "
                   "checkpoint"));
}

SafetensorsReader::SafetensorsReader(PosixFile file, SafetensorsHeader header)
    : file_(std::move(file)),
      header_(std::move(header)),
      index_(IndexByName(header_)) {}

const StoredTensor* SafetensorsReader::Find(absl::string_view tensor) const {
  const auto found = index_.find(tensor);
  return found == index_.end() ? nullptr : &header_.tensors[found->second];
}

absl::Status SafetensorsReader::ReadAt(absl::string_view tensor,
                                       uint64_t offset,
                                       absl::Span<char> bytes) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t i, Lookup(index_, tensor, path()));
  const StoredTensor& stored = header_.tensors[i];
  LOCKSTEP_RETURN_IF_ERROR(CheckReadable(stored, path()));
  LOCKSTEP_RETURN_IF_ERROR(CheckRange(stored, offset, bytes.size(), path()));
  return file_.ReadAt(header_.data_start + stored.offset + offset, bytes);
}

}  // namespace lockstep
