#include "server/state/file/state_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/status_macros.h"
#include "common/process/private_directory.h"

namespace lockstep::server {
namespace {

constexpr size_t kRecordOffset = 1024;
constexpr uint64_t kTensorsOffset = 4096;
static_assert(StateHeader::kSize <= kRecordOffset);
static_assert(kRecordOffset + StepRecordSlots::kSize <= kTensorsOffset);

// Checks the fields that the path consists of.
absl::Status CheckName(const StateHeader& header) {
  LOCKSTEP_RETURN_IF_ERROR(ValidateJobId(header.job_id));
  if (header.task_index >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "state file of task ", header.task_index, ": it must be at least 0"));
}

absl::Status CheckHeader(const StateHeader& header) {
  LOCKSTEP_RETURN_IF_ERROR(CheckName(header));
  constexpr uint64_t kMaxSize = std::numeric_limits<int64_t>::max();
  if (header.file_size >= kTensorsOffset && header.file_size <= kMaxSize) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("state file of ", header.file_size, " bytes: it must have ",
                   kTensorsOffset, " to ", kMaxSize));
}

absl::Status MakeDirectory(const std::string& directory) {
  if (mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(
      errno, absl::StrCat("cannot make --state_dir ", directory));
}

// Attempts to make a file in a directory that other processes may remove at
// once.
constexpr int kTries = 5;

absl::StatusOr<std::unique_ptr<MappedFile>> CreateIn(
    const std::string& directory, const std::string& path, uint64_t size,
    FillProgress* progress) {
  if (directory.empty()) return MappedFile::InOwnMemory(size, progress);
  absl::StatusOr<std::unique_ptr<MappedFile>> file;
  for (int tries = 0; tries < kTries; ++tries) {
    LOCKSTEP_RETURN_IF_ERROR(MakeDirectory(directory));
    file = MappedFile::Create(path, size, progress);
    // Another process of the host removes the directory with its last file.
    if (!absl::IsNotFound(file.status())) break;
  }
  return file;
}

absl::Status CheckNamed(const std::string& directory) {
  if (!directory.empty()) return absl::OkStatus();
  return absl::NotFoundError(
      "state in a process's own memory ends with the process");
}

// Adds the path of the file.
absl::Status Annotate(const absl::Status& status, const std::string& path) {
  return {status.code(), absl::StrCat(path, ": ", status.message())};
}

}  // namespace

StateFile::StateFile(std::string path, std::unique_ptr<MappedFile> file)
    : path_(std::move(path)),
      file_(std::move(file)),
      slots_(file_->bytes().data() + kRecordOffset) {}

std::string StateFile::Path(const std::string& directory,
                            const StateHeader& header) {
  if (directory.empty()) return "";
  return absl::StrCat(directory, "/", header.job_id, ".ps-", header.task_index,
                      ".state");
}

absl::StatusOr<std::unique_ptr<StateFile>> StateFile::Create(
    const std::string& directory, const StateHeader& header,
    const StepRecord& record, FillProgress* progress) {
  LOCKSTEP_RETURN_IF_ERROR(CheckHeader(header));
  const std::string path = Path(directory, header);
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<MappedFile> mapped,
      CreateIn(directory, path, header.file_size, progress));
  MappedFile& file = *mapped;
  std::unique_ptr<StateFile> state(new StateFile(path, std::move(mapped)));
  EncodeStateHeader(header, state->bytes());
  state->WriteRecord(record);
  // Last: a file that has its name is complete.
  LOCKSTEP_RETURN_IF_ERROR(file.Publish());
  return state;
}

absl::StatusOr<std::unique_ptr<StateFile>> StateFile::Open(
    const std::string& directory, const StateHeader& header) {
  LOCKSTEP_RETURN_IF_ERROR(CheckHeader(header));
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<StateFile> state,
                            OpenAs(directory, header, Layout::kOfTheHeader));
  if (state->bytes().size() != header.file_size) {
    return absl::DataLossError(
        absl::StrCat(state->path_, " has ", state->bytes().size(), " of ",
                     header.file_size, " bytes; remove it"));
  }
  // Not in OpenAny(): its callers want one record of a file that may be large,
  // and calls of the chief wait for them.
  state->file_->Load();
  return state;
}

absl::StatusOr<std::unique_ptr<StateFile>> StateFile::OpenAny(
    const std::string& directory, const StateHeader& header) {
  LOCKSTEP_RETURN_IF_ERROR(CheckName(header));
  return OpenAs(directory, header, Layout::kAny);
}

absl::StatusOr<std::unique_ptr<StateFile>> StateFile::OpenAs(
    const std::string& directory, const StateHeader& header, Layout layout) {
  LOCKSTEP_RETURN_IF_ERROR(CheckNamed(directory));
  const std::string path = Path(directory, header);
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> mapped,
                            MappedFile::Open(path, kTensorsOffset));
  std::unique_ptr<StateFile> state(new StateFile(path, std::move(mapped)));
  absl::StatusOr<StateHeader> found = DecodeStateHeader(state->bytes());
  if (!found.ok()) return Annotate(found.status(), path);
  StateHeader expected = layout == Layout::kAny ? *found : header;
  // Job and task must be right in any layout.
  expected.job_id = header.job_id;
  expected.task_index = header.task_index;
  absl::Status same = CheckStateHeader(*found, expected);
  if (!same.ok()) return Annotate(same, path);
  absl::StatusOr<StepRecord> record = state->slots_.Read();
  if (!record.ok()) return Annotate(record.status(), path);
  state->record_ = *record;
  return state;
}

absl::StatusOr<StepRecord> StateFile::Peek(const std::string& directory,
                                           const StateHeader& header) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StateFile> state,
                            OpenAny(directory, header));
  return state->record();
}

absl::Status StateFile::NoteEpoch(const std::string& directory,
                                  const StateHeader& header, uint64_t epoch) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StateFile> state,
                            OpenAny(directory, header));
  StepRecord record = state->record();
  // An older epoch must not come back.
  if (epoch <= record.epoch) return absl::OkStatus();
  record.epoch = epoch;
  state->WriteRecord(record);
  return absl::OkStatus();
}

absl::Status StateFile::Discard(const std::string& directory,
                                const StateHeader& header) {
  LOCKSTEP_RETURN_IF_ERROR(CheckName(header));
  if (directory.empty()) return absl::OkStatus();
  return MappedFile::Remove(Path(directory, header));
}

absl::Status StateFile::CheckDirectory(const std::string& directory) {
  if (directory.empty()) return absl::OkStatus();
  const auto made = PrivateDirectory::OpenOrMake(directory);
  absl::Status status = made.ok() ? made->CheckWritable() : made.status();
  if (status.ok()) return status;
  return {status.code(), absl::StrCat("--state_dir: ", status.message())};
}

void StateFile::RemoveIfEmpty(const std::string& directory) {
  // Fails if the directory is not empty: then it must stay.
  rmdir(directory.c_str());
}

void StateFile::WriteRecord(const StepRecord& record) {
  PassFaultPoint(FaultPoint::kPsRecordBefore);
  slots_.Write(record);
  PassFaultPoint(FaultPoint::kPsRecordAfter);
  record_ = record;
}

absl::Status StateFile::Remove() {
  return path_.empty() ? absl::OkStatus() : MappedFile::Remove(path_);
}

}  // namespace lockstep::server
