#include "chief/checkpoint_transfer.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/variable_settings.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr char kGlobalStep[] = "global_step";

// The checkpoint's name for tensor `tensor` of a variable.
std::string TensorName(const StateMap& map, size_t variable, size_t tensor) {
  const std::string& name = map.plan.variables[variable].name;
  if (tensor == 0) return name;
  return TensorNameOf(name, map.slots[variable][tensor - 1]);
}

CheckpointTensors Tensors(const StateMap& map) {
  CheckpointTensors tensors;
  for (size_t i = 0; i < map.plan.variables.size(); ++i) {
    const VariableSpec& variable = map.plan.variables[i];
    const TensorType type = ToTensorType(variable.dtype);
    tensors.model.push_back({variable.name, type, variable.shape});
    for (size_t slot = 1; slot <= map.slots[i].size(); ++slot) {
      tensors.optimizer.push_back(
          {TensorName(map, i, slot), type, variable.shape});
    }
  }
  for (const std::string& scalar : map.scalars) {
    tensors.optimizer.push_back({scalar, TensorType::kF32, {}});
  }
  tensors.optimizer.push_back({kGlobalStep, TensorType::kI64, {}});
  return tensors;
}

// Calls `visit(part, tensor, name, offset, size)`, offsets and sizes in bytes
// of the whole tensor, for everything that the servers hold.
template <typename Visit>
absl::Status ForEachPart(const StateMap& map, Visit visit) {
  for (const PlannedPart& part : map.plan.parts) {
    const VariableSpec& variable = map.plan.variables[part.variable];
    const size_t element = ElementSize(variable.dtype);
    for (size_t tensor = 0; tensor <= map.slots[part.variable].size();
         ++tensor) {
      LOCKSTEP_RETURN_IF_ERROR(visit(part, static_cast<int>(tensor),
                                     TensorName(map, part.variable, tensor),
                                     part.offset * element,
                                     part.count * element));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTensor(const CheckpointReader& checkpoint,
                         const TensorSpec& wanted) {
  const absl::StatusOr<const SafetensorsReader*> file =
      checkpoint.FileOf(wanted.name);
  if (!file.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the checkpoint of step ", checkpoint.manifest().global_step,
        " has no \"", wanted.name,
        "\"; restore with the model and optimizer that wrote it, or choose "
        "another checkpoint.directory"));
  }
  const StoredTensor& stored = *(*file)->Find(wanted.name);
  if (stored.type == wanted.type && stored.shape == wanted.shape) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the checkpoint of step ", checkpoint.manifest().global_step, " has \"",
      wanted.name, "\" as ", TensorTypeName(stored.type),
      ShapeString(stored.shape), "; the job wants ",
      TensorTypeName(wanted.type), ShapeString(wanted.shape),
      "; restore with the model that wrote it, or choose another "
      "checkpoint.directory"));
}

absl::Status CheckTensors(const CheckpointReader& checkpoint,
                          const StateMap& map) {
  const CheckpointTensors wanted = Tensors(map);
  for (const TensorSpec& tensor : wanted.model) {
    LOCKSTEP_RETURN_IF_ERROR(CheckTensor(checkpoint, tensor));
  }
  for (const TensorSpec& tensor : wanted.optimizer) {
    LOCKSTEP_RETURN_IF_ERROR(CheckTensor(checkpoint, tensor));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SaveCheckpoint(const CheckpointStore& store,
                            const Manifest& manifest, const StateMap& map,
                            const std::vector<float>& scalars,
                            const std::vector<ShardAccess*>& servers) {
  if (scalars.size() != map.scalars.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("scalars: ", scalars.size(), " values for ",
                     map.scalars.size(), " names"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointWriter> writer,
                            store.Begin(manifest.global_step, Tensors(map)));
  std::vector<char> bytes;
  LOCKSTEP_RETURN_IF_ERROR(ForEachPart(
      map,
      [&](const PlannedPart& part, int tensor, const std::string& name,
          uint64_t offset, size_t size) -> absl::Status {
        bytes.resize(size);
        LOCKSTEP_RETURN_IF_ERROR(servers[part.server]->ReadSnapshot(
            part.index, 1, tensor, absl::MakeSpan(bytes)));
        SafetensorsWriter& file =
            tensor == 0 ? writer->model() : writer->optimizer();
        return file.WriteAt(name, offset, bytes);
      }));
  for (size_t i = 0; i < map.scalars.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(writer->optimizer().WriteAt(
        map.scalars[i], 0,
        absl::MakeConstSpan(reinterpret_cast<const char*>(&scalars[i]),
                            sizeof(float))));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      writer->optimizer().WriteInt64(kGlobalStep, manifest.global_step));
  return writer->Commit(manifest);
}

absl::StatusOr<std::vector<float>> RestoreCheckpoint(
    const CheckpointReader& checkpoint, const StateMap& map,
    const std::vector<ShardAccess*>& servers) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTensors(checkpoint, map));
  std::vector<float> scalars(map.scalars.size());
  for (size_t i = 0; i < scalars.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        checkpoint.Read(map.scalars[i], absl::MakeSpan(&scalars[i], 1)));
  }
  std::vector<char> bytes;
  LOCKSTEP_RETURN_IF_ERROR(ForEachPart(
      map,
      [&](const PlannedPart& part, int tensor, const std::string& name,
          uint64_t offset, size_t size) -> absl::Status {
        bytes.resize(size);
        LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsReader* file,
                                  checkpoint.FileOf(name));
        LOCKSTEP_RETURN_IF_ERROR(
            file->ReadAt(name, offset, absl::MakeSpan(bytes)));
        return servers[part.server]->WriteParts(part.index, 1, tensor, bytes);
      }));
  return scalars;
}

}  // namespace lockstep
