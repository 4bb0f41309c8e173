#ifndef LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_WRITER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/aside_directory.h"
#include "common/checkpoint/format/manifest.h"
#include "common/checkpoint/format/safetensors_file.h"
#include "common/checkpoint/format/safetensors_header.h"

namespace lockstep {

// The tensors of a new checkpoint. No name may be in both lists.
struct CheckpointTensors {
  std::vector<TensorSpec> model;      // variables
  std::vector<TensorSpec> optimizer;  // "<variable>/<slot>", averages, scalars
};

// CheckpointWriter is one unfinished checkpoint, in an aside directory.
// Commit() makes it appear, atomically and complete; without Commit() the
// destructor removes it.
//
//   being written -> committed
//                 -> destroyed: removed
//
// Threads: as SafetensorsWriter; Commit() excludes all writing.
// Owns:    its aside directory; that of a killed process is removed by
//          CheckpointStore::Prune().
class CheckpointWriter {
 public:
  // Reserves the space of both files. `directory` holds all checkpoints of the
  // job and must exist.
  //
  //   kInvalidArgument    negative step, a name in both files, or an error of
  //                       SafetensorsWriter::Create()
  //   kAlreadyExists      a complete checkpoint of this step exists
  //   kResourceExhausted  the disk is full
  //   and the errors of PosixFile
  static absl::StatusOr<std::unique_ptr<CheckpointWriter>> Create(
      const std::string& directory, int64_t step,
      const CheckpointTensors& tensors);

  // Must not be called after a Commit() that has found all bytes written.
  SafetensorsWriter& model() { return *model_; }
  SafetensorsWriter& optimizer() { return *optimizer_; }

  // Makes the checkpoint appear with `manifest`, whose global_step and files it
  // fills in. Replaces a damaged checkpoint of this step.
  //
  //   kFailedPrecondition  a byte was never written (write it and repeat), or
  //                        it was committed before
  //   kInvalidArgument     names the field of `manifest`
  //   kAlreadyExists       another process has completed one meanwhile
  //   and the errors of PosixFile. If only the last sync fails, the checkpoint
  //   exists but might not survive a loss of power.
  absl::Status Commit(Manifest manifest);
  // FileMetadata() of the files as they were written, before they appeared
  // under their name. Empty before Commit().
  const std::string& files() const { return files_; }

 private:
  CheckpointWriter(std::string directory, int64_t step, AsideDirectory aside,
                   std::unique_ptr<SafetensorsWriter> model,
                   std::unique_ptr<SafetensorsWriter> optimizer);
  // Syncs and hashes the files, and closes them. No effect if that is done.
  absl::Status FinishFiles();
  absl::Status WriteManifest(Manifest manifest) const;
  absl::Status Publish();

  const std::string directory_;
  const int64_t step_;
  AsideDirectory aside_;
  // Null once the files are finished.
  std::unique_ptr<SafetensorsWriter> model_;
  std::unique_ptr<SafetensorsWriter> optimizer_;
  std::vector<CheckpointFile> finished_;  // of the manifest
  bool committed_ = false;
  std::string files_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_WRITER_H_
