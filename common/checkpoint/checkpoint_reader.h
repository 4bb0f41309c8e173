#ifndef LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_READER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_READER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/checkpoint/format/manifest.h"
#include "common/checkpoint/format/safetensors_file.h"
#include "common/plan/variable_spec.h"

namespace lockstep {

// CheckpointReader is one complete checkpoint, open for restore or evaluation.
// It stays readable if the checkpoint is pruned meanwhile.
//
// Names are looked up in the model first, then in the optimizer; no name is in
// both. model().header().tensors lists all variables.
//
// Threads: safe to share.
// Units:   offsets and sizes count elements.
class CheckpointReader {
 public:
  // `directory` holds all checkpoints of the job. Hashes are not compared: see
  // CheckpointStore::Verify().
  //
  //   kNotFound            no checkpoint of this step
  //   kDataLoss            damaged, or files of different steps; names file,
  //                        field, value and fix
  //   kFailedPrecondition  a newer format version
  //   and the errors of PosixFile
  static absl::StatusOr<CheckpointReader> Open(const std::string& directory,
                                               int64_t step);

  const Manifest& manifest() const { return manifest_; }
  const SafetensorsReader& model() const { return model_; }
  const SafetensorsReader& optimizer() const { return optimizer_; }

  // From now on CheckVariable(), Read() and ReadRange() read the tensor
  // `stored` for the variable `name`, e.g. its moving average. `stored` need
  // not exist. Must not be called while another thread reads.
  void ReadInPlaceOf(const std::string& name, const std::string& stored) {
    stored_as_[name] = stored;
  }

  // Checks that the model holds this variable with the job's shape and dtype;
  // for a growing table, some of its rows and their keys.
  //
  //   kNotFound         no such variable
  //   kInvalidArgument  another shape or dtype; names both
  absl::Status CheckVariable(const VariableSpec& variable) const;

  // Fills `values` with a whole floating-point tensor, or with the elements
  // from `first` on. F16, BF16 and F64 are converted, F64 with rounding.
  //
  //   kNotFound         no such tensor
  //   kInvalidArgument  I64, or (Read) `values` is not of the tensor's size
  //   kOutOfRange       (ReadRange) beyond the end of the tensor
  //   kDataLoss         the file was cut off after it was opened
  absl::Status Read(absl::string_view name, absl::Span<float> values) const;
  absl::Status ReadRange(absl::string_view name, int64_t first,
                         absl::Span<float> values) const;

  // Returns the keys of a growing table's rows in the model, in the order of
  // the rows, which is ascending.
  //
  //   kNotFound         no such tensor
  //   kInvalidArgument  not a list of I64
  //   kDataLoss         the keys do not ascend
  absl::StatusOr<std::vector<int64_t>> ReadKeys(absl::string_view table) const;

  // Returns the value of an I64 scalar, such as "global_step".
  //
  //   kNotFound         no such tensor
  //   kInvalidArgument  not an I64 scalar
  absl::StatusOr<int64_t> ReadInt64(absl::string_view name) const;

  // Returns the file that holds the tensor, for reading raw bytes.
  //
  //   kNotFound  no such tensor
  absl::StatusOr<const SafetensorsReader*> FileOf(absl::string_view name) const;

 private:
  CheckpointReader(Manifest manifest, SafetensorsReader model,
                   SafetensorsReader optimizer);
  absl::Status CheckStep() const;
  // Returns the tensor name in the files.
  absl::string_view Stored(absl::string_view name) const;

  Manifest manifest_;
  SafetensorsReader model_;
  SafetensorsReader optimizer_;
  std::map<std::string, std::string, std::less<>> stored_as_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_READER_H_
