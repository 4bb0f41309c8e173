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
// It stays readable when the checkpoint is pruned meanwhile.
//
// Names are looked up in the model first, then in the optimizer; none is in
// both. model().header().tensors lists all variables.
//
// Threads: safe to share.
// Units:   offsets and sizes count elements.
class CheckpointReader {
 public:
  // `directory` holds all checkpoints of the job. Contents are not hashed: see
  // CheckpointStore::Verify().
  //
  //   kNotFound            no checkpoint of this step
  //   kDataLoss            damaged, or files of different steps; names file,
  //                        field, value and what to do
  //   kFailedPrecondition  of a newer format version
  //   and what PosixFile reports
  static absl::StatusOr<CheckpointReader> Open(const std::string& directory,
                                               int64_t step);

  const Manifest& manifest() const { return manifest_; }
  const SafetensorsReader& model() const { return model_; }
  const SafetensorsReader& optimizer() const { return optimizer_; }

  // From now on CheckVariable(), Read() and ReadRange() take the tensor
  // `stored` for the variable `name`, as where its moving average is wanted. It
  // need not be there. Not to be called while another thread reads.
  void ReadInPlaceOf(const std::string& name, const std::string& stored) {
    stored_as_[name] = stored;
  }

  // Whether the model holds this variable as the job declares it; of a growing
  // table, some of its rows and their keys.
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

  // The keys of the rows that the model holds of a growing table, in the order
  // of its rows, which is ascending.
  //
  //   kNotFound         no such tensor
  //   kInvalidArgument  not a list of I64
  //   kDataLoss         the keys do not ascend
  absl::StatusOr<std::vector<int64_t>> ReadKeys(absl::string_view table) const;

  // The value of an I64 scalar, such as "global_step".
  //
  //   kNotFound         no such tensor
  //   kInvalidArgument  not an I64 scalar
  absl::StatusOr<int64_t> ReadInt64(absl::string_view name) const;

  // The file that holds the tensor, for reading bytes as they are.
  //
  //   kNotFound  no such tensor
  absl::StatusOr<const SafetensorsReader*> FileOf(absl::string_view name) const;

 private:
  CheckpointReader(Manifest manifest, SafetensorsReader model,
                   SafetensorsReader optimizer);
  absl::Status CheckStep() const;
  // The name in the files.
  absl::string_view Stored(absl::string_view name) const;

  Manifest manifest_;
  SafetensorsReader model_;
  SafetensorsReader optimizer_;
  std::map<std::string, std::string, std::less<>> stored_as_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_READER_H_
