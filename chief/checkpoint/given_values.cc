#include "chief/checkpoint/given_values.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/files/posix_file.h"
#include "common/numeric/dtype.h"

namespace lockstep::chief {
namespace {

bool IsGiven(const VariableSpec& variable) {
  return variable.initializer.kind == Initializer::Kind::kGiven;
}

uint64_t BytesOf(const VariableSpec& variable) {
  return static_cast<uint64_t>(NumElements(variable.shape)) *
         ElementSize(variable.dtype);
}

std::vector<TensorSpec> TensorsOf(const std::vector<VariableSpec>& variables) {
  std::vector<TensorSpec> tensors;
  for (const VariableSpec& variable : variables) {
    if (!IsGiven(variable)) continue;
    tensors.push_back(
        {variable.name, ToTensorType(variable.dtype), variable.shape});
  }
  return tensors;
}

// Removes files that a killed chief has left, except `kept`. Safe, because a
// directory has one chief at a time.
void RemoveLeftOvers(const std::string& directory, const std::string& kept) {
  std::error_code error;
  std::vector<std::filesystem::path> found;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    if (entry->path() != kept &&
        entry->path().filename().string().starts_with(".initial-")) {
      found.push_back(entry->path());
    }
  }
  for (const std::filesystem::path& path : found) {
    std::filesystem::remove(path, error);
  }
}

}  // namespace

bool HasGivenValues(const std::vector<VariableSpec>& variables) {
  return std::any_of(variables.begin(), variables.end(), IsGiven);
}

GivenValues::GivenValues(std::string directory)
    : directory_(std::move(directory)) {}

std::string GivenValues::KeptPath() const {
  return absl::StrCat(directory_, "/initial.safetensors");
}

std::string GivenValues::AsidePath() const {
  // A hidden name that RemoveLeftOvers() knows.
  return absl::StrCat(directory_, "/.initial-before.safetensors");
}

absl::Status GivenValues::Want(const std::vector<VariableSpec>& variables) {
  MutexLock lock(mutex_);
  // Each recovery round calls this: a transfer that has begun goes on.
  if (reader_ != nullptr || writer_ != nullptr) return absl::OkStatus();
  variables_ = variables;
  total_ = 0;
  for (const VariableSpec& variable : variables_) {
    if (IsGiven(variable)) total_ += BytesOf(variable);
  }
  return Begin();
}

absl::Status GivenValues::Begin() {
  writer_.reset();  // removes its file
  sender_.reset();
  written_ = 0;
  std::error_code error;
  if (directory_.empty()) {
    // In a directory that strangers may write to, too.
    LOCKSTEP_ASSIGN_OR_RETURN(
        writer_, SafetensorsWriter::CreateUnnamed(
                     std::filesystem::temp_directory_path(error).string(),
                     TensorsOf(variables_)));
    return absl::OkStatus();
  }
  std::filesystem::create_directories(directory_, error);
  // A hidden name until the values are complete.
  const std::string path =
      absl::StrCat(directory_, "/.initial-", getpid(), ".safetensors");
  // Without a file aside that this chief has moved there, all are left over.
  RemoveLeftOvers(directory_, set_aside_ ? AsidePath() : "");
  // Aside, not away: workers that took part in the run of the file may register
  // only after this.
  std::filesystem::rename(KeptPath(), AsidePath(), error);
  if (!error) set_aside_ = true;
  std::filesystem::remove(path, error);  // of an earlier process of this number
  LOCKSTEP_ASSIGN_OR_RETURN(
      writer_, SafetensorsWriter::Create(path, TensorsOf(variables_), {}));
  return absl::OkStatus();
}

bool GivenValues::IsWantedFrom(int worker,
                               const std::function<bool(int)>& is_alive) {
  MutexLock lock(mutex_);
  if (writer_ == nullptr) return false;
  if (sender_.has_value()) {
    // By the ranges in the file: a worker that was killed and sends again from
    // the first byte on counts twice in `written_`.
    if (*sender_ == worker) return !writer_->IsComplete();
    if (is_alive(*sender_)) return false;
    // The rest of the values must come from the same worker as the first.
    // If this fails, the Want() of the next round begins again.
    if (!Begin().ok()) return false;
  }
  sender_ = worker;
  return true;
}

absl::Status GivenValues::Write(int worker, size_t variable, uint64_t offset,
                                absl::Span<const char> bytes) {
  MutexLock lock(mutex_);
  if (writer_ == nullptr || sender_ != worker) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the initial values of worker ", worker, " are not wanted"));
  }
  if (variable >= variables_.size() || !IsGiven(variables_[variable]) ||
      bytes.size() > kMaxGivenBlock) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", worker, " sent ", bytes.size(), " bytes for variable ",
        variable, " of ", variables_.size(),
        "; it must be one whose initializer is GIVEN, and a block at most ",
        kMaxGivenBlock, " bytes long"));
  }
  const absl::Status status =
      writer_->WriteAt(variables_[variable].name, offset, bytes);
  if (absl::IsOutOfRange(status)) {
    return absl::InvalidArgumentError(status.message());
  }
  LOCKSTEP_RETURN_IF_ERROR(status);
  written_ = std::min(written_ + bytes.size(), total_);
  return absl::OkStatus();
}

std::string GivenValues::Progress() const {
  MutexLock lock(mutex_);
  if (!sender_.has_value()) return "a worker to send the initial values";
  const uint64_t percent = total_ == 0 ? 0 : 100 * written_ / total_;
  return absl::StrCat("worker ", *sender_, " to send the initial values, ",
                      percent, " %");
}

absl::StatusOr<std::shared_ptr<SafetensorsReader>> GivenValues::Take() {
  MutexLock lock(mutex_);
  if (reader_ != nullptr) return reader_;
  if (writer_ == nullptr || written_ < total_) return nullptr;
  const absl::Status complete = writer_->Finish();
  // A repeated block has counted twice, so some blocks may still be missing.
  if (absl::IsFailedPrecondition(complete)) return nullptr;
  LOCKSTEP_RETURN_IF_ERROR(complete);
  // By its descriptor: another process may have put a file at the path.
  LOCKSTEP_ASSIGN_OR_RETURN(SafetensorsReader reader, writer_->Read());
  if (!directory_.empty()) {
    std::error_code error;
    std::filesystem::rename(writer_->path(), KeptPath(), error);
    // A job that is started again reads it.
    if (!error) SyncDirectory(directory_).IgnoreError();
    std::filesystem::remove(AsidePath(), error);
    set_aside_ = false;
  }
  writer_.reset();
  reader_ = std::make_shared<SafetensorsReader>(std::move(reader));
  return reader_;
}

std::shared_ptr<SafetensorsReader> GivenValues::TakeKept(
    const std::vector<VariableSpec>& variables) {
  MutexLock lock(mutex_);
  if (directory_.empty()) return nullptr;
  // Without a writer the file aside, if any, is one that a chief which died in
  // the midst of a transfer has set aside.
  if (writer_ != nullptr) {
    std::error_code error;  // most often there is no such file
    std::filesystem::rename(AsidePath(), KeptPath(), error);
    if (!error) set_aside_ = false;
  }
  absl::StatusOr<SafetensorsReader> reader =
      SafetensorsReader::Open(KeptPath());
  if (!reader.ok()) return nullptr;
  for (const TensorSpec& tensor : TensorsOf(variables)) {
    // A file of another model counts as none.
    const StoredTensor* stored = reader->Find(tensor.name);
    if (stored == nullptr || stored->type != tensor.type ||
        stored->shape != tensor.shape) {
      return nullptr;
    }
  }
  return std::make_shared<SafetensorsReader>(*std::move(reader));
}

}  // namespace lockstep::chief
