#include "common/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/step_directory.h"
#include "common/job/variable_settings.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/float16.h"

namespace lockstep {
namespace {

constexpr char kGlobalStep[] = "global_step";
constexpr size_t kPieceElements = 1 << 16;  // elements converted at a time

template <typename Stored, typename Convert>
absl::Status ReadConverted(const SafetensorsReader& file,
                           absl::string_view name, uint64_t first,
                           absl::Span<float> values, Convert convert) {
  std::vector<Stored> piece(std::min(values.size(), kPieceElements));
  while (!values.empty()) {
    // The last piece may be smaller than the buffer.
    const size_t count = std::min(values.size(), kPieceElements);
    LOCKSTEP_RETURN_IF_ERROR(
        file.ReadAt(name, first * sizeof(Stored),
                    absl::MakeSpan(reinterpret_cast<char*>(piece.data()),
                                   count * sizeof(Stored))));
    std::transform(piece.begin(), piece.begin() + count, values.begin(),
                   convert);
    values.remove_prefix(count);
    first += count;
  }
  return absl::OkStatus();
}

absl::Status ReadElements(const SafetensorsReader& file,
                          const StoredTensor& tensor, uint64_t first,
                          absl::Span<float> values) {
  switch (tensor.type) {
    case TensorType::kF32:
      return file.ReadAt(tensor.name, first * sizeof(float),
                         absl::MakeSpan(reinterpret_cast<char*>(values.data()),
                                        values.size() * sizeof(float)));
    case TensorType::kF16:
      return ReadConverted<uint16_t>(
          file, tensor.name, first, values,
          [](uint16_t bits) { return ToFloat(Float16{bits}); });
    case TensorType::kBF16:
      return ReadConverted<uint16_t>(
          file, tensor.name, first, values,
          [](uint16_t bits) { return ToFloat(BFloat16{bits}); });
    case TensorType::kF64:
      return ReadConverted<double>(
          file, tensor.name, first, values,
          [](double value) { return static_cast<float>(value); });
    // A float cannot hold every int64, so such a tensor has its own function.
    case TensorType::kI64:
      return absl::InvalidArgumentError(
          absl::StrCat(file.path(), ": ", DescribeTensor(tensor),
                       " is not of F16, BF16, F32 or F64: use ReadInt64()"));
    default:
      // Refuses the type.
      return file.ReadAt(tensor.name, 0, {});
  }
}

std::string KeysOf(absl::string_view table) {
  return TensorNameOf(table, kKeysName);
}

int64_t CountElements(const StoredTensor& tensor) {
  return static_cast<int64_t>(tensor.bytes / TensorTypeSize(tensor.type));
}

}  // namespace

absl::StatusOr<CheckpointReader> CheckpointReader::Open(
    const std::string& directory, int64_t step) {
  LOCKSTEP_ASSIGN_OR_RETURN(Manifest manifest,
                            ReadCompleteManifest(directory, step));
  // Opening reads only the headers; elements stay on the disk until a caller
  // asks for them.
  const std::filesystem::path place =
      std::filesystem::path(directory) / StepDirectoryName(step);
  LOCKSTEP_ASSIGN_OR_RETURN(
      SafetensorsReader model,
      SafetensorsReader::Open((place / kModelFile).string()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      SafetensorsReader optimizer,
      SafetensorsReader::Open((place / kOptimizerFile).string()));
  CheckpointReader reader(std::move(manifest), std::move(model),
                          std::move(optimizer));
  LOCKSTEP_RETURN_IF_ERROR(reader.CheckStep());
  return reader;
}

CheckpointReader::CheckpointReader(Manifest manifest, SafetensorsReader model,
                                   SafetensorsReader optimizer)
    : manifest_(std::move(manifest)),
      model_(std::move(model)),
      optimizer_(std::move(optimizer)) {}

absl::Status CheckpointReader::CheckStep() const {
  // Only checkpoints that hold the tensor can contradict the manifest.
  if (optimizer_.Find(kGlobalStep) == nullptr) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t step, ReadInt64(kGlobalStep));
  if (step == manifest_.global_step) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(optimizer_.path(), ": ", kGlobalStep, " is ", step,
                   ", the manifest says ", manifest_.global_step,
                   "; the checkpoint is damaged: use another"));
}

absl::string_view CheckpointReader::Stored(absl::string_view name) const {
  const auto found = stored_as_.find(name);
  return found == stored_as_.end() ? name : found->second;
}

absl::Status CheckpointReader::CheckVariable(
    const VariableSpec& variable) const {
  const absl::string_view name = Stored(variable.name);
  const absl::StatusOr<const SafetensorsReader*> file = FileOf(name);
  if (!file.ok()) {
    return absl::NotFoundError(absl::StrCat(
        model_.path(), ": has no variable \"", name,
        "\"; the model must be the one that wrote the checkpoint"));
  }
  const StoredTensor* stored = (*file)->Find(name);
  const TensorType type = ToTensorType(variable.dtype);
  std::vector<int64_t> shape = variable.shape;
  const StoredTensor* keys =
      variable.is_table() ? model_.Find(KeysOf(variable.name)) : nullptr;
  // A growing table has as many rows as keys at the time of the checkpoint; the
  // job states only its first size.
  if (variable.grows() && keys != nullptr) shape[0] = CountElements(*keys);
  if (stored->type == type && stored->shape == shape &&
      variable.grows() == (keys != nullptr)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      (*file)->path(), ": ", DescribeTensor(*stored), " is ",
      TensorTypeName(type), " ", ShapeString(variable.shape),
      variable.grows() ? ", growing," : "",
      " in the job; the model must be the one that wrote the checkpoint"));
}

absl::StatusOr<const SafetensorsReader*> CheckpointReader::FileOf(
    absl::string_view name) const {
  for (const SafetensorsReader* file : {&model_, &optimizer_}) {
    if (file->Find(name) != nullptr) return file;
  }
  return absl::NotFoundError(absl::StrCat(model_.path(), " and ",
                                          optimizer_.path(),
                                          ": have no tensor \"", name, "\""));
}

absl::Status CheckpointReader::Read(absl::string_view name,
                                    absl::Span<float> values) const {
  name = Stored(name);
  LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsReader* file, FileOf(name));
  const StoredTensor& tensor = *file->Find(name);
  if (static_cast<int64_t>(values.size()) != CountElements(tensor)) {
    return absl::InvalidArgumentError(absl::StrCat(
        file->path(), ": ", DescribeTensor(tensor), " has ",
        CountElements(tensor), " elements, ", values.size(), " are asked for"));
  }
  return ReadElements(*file, tensor, 0, values);
}

absl::Status CheckpointReader::ReadRange(absl::string_view name, int64_t first,
                                         absl::Span<float> values) const {
  name = Stored(name);
  LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsReader* file, FileOf(name));
  const StoredTensor& tensor = *file->Find(name);
  const int64_t count = CountElements(tensor);
  // Compares differences: `first` plus a size could overflow.
  if (first < 0 || first > count ||
      static_cast<int64_t>(values.size()) > count - first) {
    return absl::OutOfRangeError(
        absl::StrCat(file->path(), ": ", DescribeTensor(tensor), " has ", count,
                     " elements, ", values.size(), " from element ", first,
                     " are beyond its end"));
  }
  return ReadElements(*file, tensor, static_cast<uint64_t>(first), values);
}

absl::StatusOr<std::vector<int64_t>> CheckpointReader::ReadKeys(
    absl::string_view table) const {
  const std::string name = KeysOf(table);
  LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsReader* file, FileOf(name));
  const StoredTensor& tensor = *file->Find(name);
  if (tensor.type != TensorType::kI64 || tensor.shape.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        file->path(), ": ", DescribeTensor(tensor), " is not a list of I64"));
  }
  std::vector<int64_t> keys(CountElements(tensor));
  LOCKSTEP_RETURN_IF_ERROR(file->ReadAt(
      name, 0,
      absl::MakeSpan(reinterpret_cast<char*>(keys.data()), tensor.bytes)));
  // Strictly ascending: a key that is there twice would give one row two
  // values.
  if (std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<>()) ==
      keys.end()) {
    return keys;
  }
  return absl::DataLossError(
      absl::StrCat(file->path(), ": ", DescribeTensor(tensor),
                   " does not ascend; the checkpoint is damaged: use another"));
}

absl::StatusOr<int64_t> CheckpointReader::ReadInt64(
    absl::string_view name) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsReader* file, FileOf(name));
  const StoredTensor& tensor = *file->Find(name);
  if (tensor.type != TensorType::kI64 || !tensor.shape.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file->path(), ": ", DescribeTensor(tensor), " is not an I64 scalar"));
  }
  char bytes[sizeof(int64_t)];
  LOCKSTEP_RETURN_IF_ERROR(file->ReadAt(name, 0, absl::MakeSpan(bytes)));
  int64_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

}  // namespace lockstep
