#ifndef LOCKSTEP_SERVER_STATE_FILE_STATE_FILE_H_
#define LOCKSTEP_SERVER_STATE_FILE_STATE_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/state/file/mapped_file.h"
#include "server/state/file/state_header.h"
#include "server/state/file/step_record.h"

namespace lockstep::server {

// StateFile is the state of one server in a file on a memory file system, which
// outlives the server; if the directory is "", it is in the server's own
// memory, and there never is a file of an earlier process:
//
//   header at 0 | step record at 1024 | the rest, from 4096 on
//
// Threads: not thread-safe; the caller must guard the bytes.
class StateFile {
 public:
  // Returns "<directory>/<job id>.ps-<task index>.state"; "" in no directory.
  static std::string Path(const std::string& directory,
                          const StateHeader& header);

  // Makes a file of header.file_size bytes, all zeros except the header and
  // `record`. Also makes the directory, mode 0700, if only the last part of its
  // path is missing; an existing one must be a PrivateDirectory. A file that
  // others can see is complete.
  //
  //   kInvalidArgument    job id, task index or size out of range
  //   and the errors of MappedFile::Create() and Publish()
  static absl::StatusOr<std::unique_ptr<StateFile>> Create(
      const std::string& directory, const StateHeader& header,
      const StepRecord& record, FillProgress* progress = nullptr);

  // Maps the file that an earlier process of this task made.
  //
  //   kInvalidArgument     as in Create()
  //   kNotFound            there is none
  //   kFailedPrecondition  another job, task, layout or version
  //   kDataLoss            damaged; the message says where
  //   and the other errors of MappedFile::Open()
  static absl::StatusOr<std::unique_ptr<StateFile>> Open(
      const std::string& directory, const StateHeader& header);

  // Returns the newest record of the file that an earlier process of this task
  // made, in any layout. Unmaps the file before it returns.
  //
  // Errors: those of Open(); ignores layout and size of `header`.
  static absl::StatusOr<StepRecord> Peek(const std::string& directory,
                                         const StateHeader& header);

  // Writes `epoch` into the record of that file if it is newer. No process may
  // have the file open.
  //
  // Errors: as Peek()
  static absl::Status NoteEpoch(const std::string& directory,
                                const StateHeader& header, uint64_t epoch);

  // Deletes the file that Open() would look for, with any content. A file that
  // does not exist is no error.
  //
  //   kInvalidArgument   as in Create()
  //   kPermissionDenied  the directory is not ours
  static absl::Status Discard(const std::string& directory,
                              const StateHeader& header);

  // Checks that files can be made in a directory, before there is any state.
  // Makes the directory, as Create() does. "" is valid.
  //
  // Errors: those of PrivateDirectory::OpenOrMake() and CheckWritable()
  static absl::Status CheckDirectory(const std::string& directory);

  // Deletes an empty directory. Ignores all errors: a directory that is not
  // empty must stay.
  static void RemoveIfEmpty(const std::string& directory);

  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  // The whole file; a StateLayout has the place of each tensor.
  absl::Span<std::byte> bytes() const { return file_->bytes(); }
  const std::string& path() const { return path_; }
  // The file for processes that read it too; the header is the proof.
  SharedFile Share() const { return file_->Share(StateHeader::kSize); }

  // The newest step record.
  const StepRecord& record() const { return record_; }
  // Makes `record` the newest one. It outlives this process from here on.
  void WriteRecord(const StepRecord& record);

  // Deletes the file; the memory stays usable for the lifetime of this object.
  // Safe to repeat.
  //
  //   kPermissionDenied  the directory is not ours
  absl::Status Remove();

 private:
  StateFile(std::string path, std::unique_ptr<MappedFile> file);

  // The file of the job and task of `header`, in any layout.
  static absl::StatusOr<std::unique_ptr<StateFile>> OpenAny(
      const std::string& directory, const StateHeader& header);
  enum class Layout { kOfTheHeader, kAny };
  static absl::StatusOr<std::unique_ptr<StateFile>> OpenAs(
      const std::string& directory, const StateHeader& header, Layout layout);

  const std::string path_;
  const std::unique_ptr<MappedFile> file_;
  StepRecordSlots slots_;
  StepRecord record_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_FILE_STATE_FILE_H_
