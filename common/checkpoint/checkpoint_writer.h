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

// What a checkpoint is going to hold. No name may be in both lists.
struct CheckpointTensors {
  std::vector<TensorSpec> model;      // variables
  std::vector<TensorSpec> optimizer;  // "<variable>/<slot>", averages, scalars
};

// CheckpointWriter is one checkpoint in the making, aside. It appears with
// Commit(), at once and whole; destroyed before, it leaves nothing.
//
//   being written -> committed
//                 -> destroyed: removed
//
// Threads: as SafetensorsWriter; Commit() excludes all writing.
// Owns:    its aside directory. The process that dies leaves that behind, and
//          CheckpointStore::Prune() removes it.
class CheckpointWriter {
 public:
  // Reserves the space of both files. `directory` holds all checkpoints of
  // the job and exists.
  //
  //   kInvalidArgument    negative step, a name in both files, or what
  //                       SafetensorsWriter::Create() refuses
  //   kAlreadyExists      the checkpoint of this step is there and complete
  //   kResourceExhausted  the disk is full
  //   and what PosixFile reports
  static absl::StatusOr<std::unique_ptr<CheckpointWriter>> Create(
      const std::string& directory, int64_t step,
      const CheckpointTensors& tensors);

  SafetensorsWriter& model() { return *model_; }
  SafetensorsWriter& optimizer() { return *optimizer_; }

  // Makes the checkpoint appear as `manifest` describes it; global_step and
  // files are filled in here. A damaged checkpoint of this step is replaced.
  //
  //   kFailedPrecondition  a byte was never written (write it and repeat), or
  //                        it was committed before
  //   kInvalidArgument     names the field of `manifest`
  //   kAlreadyExists       a complete one came in between
  //   and what PosixFile reports. One failure comes after the fact: if only
  //   the last sync fails, the checkpoint is there but might not survive a
  //   loss of power.
  absl::Status Commit(Manifest manifest);

 private:
  CheckpointWriter(std::string directory, int64_t step, AsideDirectory aside,
                   std::unique_ptr<SafetensorsWriter> model,
                   std::unique_ptr<SafetensorsWriter> optimizer);
  absl::Status WriteManifest(Manifest manifest) const;
  absl::Status Publish();

  const std::string directory_;
  const int64_t step_;
  AsideDirectory aside_;
  std::unique_ptr<SafetensorsWriter> model_;
  std::unique_ptr<SafetensorsWriter> optimizer_;
  bool committed_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_WRITER_H_
