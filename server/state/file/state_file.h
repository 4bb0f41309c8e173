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

// StateFile is the state of one server on a memory file system, which lives on
// when the server is killed; or, where the directory is "", in the server's own
// memory, so that there never is a file of an earlier process:
//
//   header at 0 | step record at 1024 | the rest, from 4096 on
//
// Threads: not safe to share; the bytes are the caller's to guard.
class StateFile {
 public:
  // "<directory>/<job id>.ps-<task index>.state"; "" in no directory.
  static std::string Path(const std::string& directory,
                          const StateHeader& header);

  // Makes a file of header.file_size bytes, all zeros but for the header and
  // `record`. Makes the directory too, mode 0700, if only the last part of its
  // path is missing; one that is there must be a PrivateDirectory. A file that
  // could be made is whole.
  //
  //   kInvalidArgument    job id, task index or size out of range
  //   and what MappedFile::Create() and Publish() say
  static absl::StatusOr<std::unique_ptr<StateFile>> Create(
      const std::string& directory, const StateHeader& header,
      const StepRecord& record, FillProgress* progress = nullptr);

  // Maps the file that an earlier process of this task made.
  //
  //   kInvalidArgument     as in Create()
  //   kNotFound            there is none
  //   kFailedPrecondition  another job, task, layout or version
  //   kDataLoss            damaged; says what
  //   and what else MappedFile::Open() says
  static absl::StatusOr<std::unique_ptr<StateFile>> Open(
      const std::string& directory, const StateHeader& header);

  // Returns the newest record of the file that an earlier process of this task
  // made, in any layout. Unmaps the file before it returns.
  //
  // Errors: those of Open(); layout and size of `header` are not looked at.
  static absl::StatusOr<StepRecord> Peek(const std::string& directory,
                                         const StateHeader& header);

  // Writes a newer epoch into the record of that file, which no
  // process has open.
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

  // Finds out, before there is anything to be kept, whether files can be made
  // in a directory. Makes it, as Create() does. "" is fine.
  //
  // Errors: those of PrivateDirectory::OpenOrMake() and CheckWritable()
  static absl::Status CheckDirectory(const std::string& directory);

  // Deletes a directory in which nothing is left; in any other case there is
  // nothing to be done about it.
  static void RemoveIfEmpty(const std::string& directory);

  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  // The whole file; a StateLayout has the place of each tensor.
  absl::Span<std::byte> bytes() const { return file_->bytes(); }
  const std::string& path() const { return path_; }
  // For processes that shall read it too; the header is the proof.
  SharedFile Share() const { return file_->Share(StateHeader::kSize); }

  // The newest step record.
  const StepRecord& record() const { return record_; }
  // Makes `record` the newest one. It survives this process from here on.
  void WriteRecord(const StepRecord& record);

  // Deletes the file; the memory stays usable until this object goes. Safe to
  // repeat.
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
