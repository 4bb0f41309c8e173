#include "chief/checkpoint/checkpoint_transfer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "chief/checkpoint/growing_tables.h"
#include "chief/checkpoint/tensor_blocks.h"
#include "chief/checkpoint/volume_error.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/job/variable_settings.h"
#include "common/process/new_thread.h"
#include "common/text/progress_text.h"

namespace lockstep::chief {
namespace {

constexpr char kGlobalStep[] = "global_step";

// Adds a variable, of this shape in the checkpoint, and its slots.
void AddVariable(const StateMap& map, size_t variable,
                 const std::vector<int64_t>& shape,
                 CheckpointTensors& tensors) {
  const TensorType type = ToTensorType(map.plan.variables[variable].dtype);
  tensors.model.push_back({map.TensorName(variable, 0), type, shape});
  for (size_t slot = 1; slot <= map.slots[variable].size(); ++slot) {
    tensors.optimizer.push_back({map.TensorName(variable, slot), type, shape});
  }
}

void AddScalars(const StateMap& map, CheckpointTensors& tensors) {
  for (const std::string& scalar : map.scalars) {
    tensors.optimizer.push_back({scalar, TensorType::kF32, {}});
  }
  // In the file too, for programs that read it without the manifest.
  tensors.optimizer.push_back({kGlobalStep, TensorType::kI64, {}});
}

absl::StatusOr<CheckpointTensors> Tensors(const StateMap& map,
                                          const JobSnapshot& snapshot) {
  CheckpointTensors tensors;
  for (size_t i = 0; i < map.plan.variables.size(); ++i) {
    std::vector<int64_t> shape = map.plan.variables[i].shape;
    if (map.plan.variables[i].grows()) {
      LOCKSTEP_ASSIGN_OR_RETURN(shape[0], CountRows(map, i, snapshot));
      tensors.model.push_back({map.KeysName(i), TensorType::kI64, {shape[0]}});
    }
    AddVariable(map, i, shape, tensors);
  }
  AddScalars(map, tensors);
  return tensors;
}

// The elements of a large part that one message carries.
constexpr int64_t kBlock = int64_t{1} << 20;

// Blocks that are restored at once: while servers take some in, others are read
// from the disk.
constexpr int kBlocksAtOnce = 4;

// One block of a variable or of one of its slots.
struct Portion {
  TensorBlock block;
  size_t variable;
  int tensor;
  std::string name;
  size_t element;  // bytes

  uint64_t offset() const { return block.offset * element; }
  size_t size() const { return block.count * element; }
  ElementRange StretchOf(const TensorBlock::Piece& piece) const {
    return {piece.part, tensor, piece.first, piece.count};
  }
};

// Calls `visit(portion)` for all tensors of the servers, except growing tables.
template <typename Visit>
absl::Status ForEachPortion(const StateMap& map, Visit visit) {
  for (size_t v = 0; v < map.plan.variables.size(); ++v) {
    if (map.plan.variables[v].grows()) continue;
    const size_t element = ElementSize(map.plan.variables[v].dtype);
    for (const TensorBlock& block :
         CutIntoBlocks(map.plan, static_cast<int>(v), kBlock)) {
      for (size_t tensor = 0; tensor <= map.slots[v].size(); ++tensor) {
        LOCKSTEP_RETURN_IF_ERROR(
            visit(Portion{block, v, static_cast<int>(tensor),
                          map.TensorName(v, tensor), element}));
      }
    }
  }
  return absl::OkStatus();
}

// The bytes of all tensors. `rows_of(i)` is the number of rows of the growing
// table `i`, or an error.
template <typename RowsOf>
absl::StatusOr<int64_t> BytesOf(const StateMap& map, RowsOf rows_of) {
  int64_t bytes = 0;
  for (size_t i = 0; i < map.plan.variables.size(); ++i) {
    if (!map.plan.variables[i].grows()) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t rows, rows_of(i));
    bytes += BytesOfRows(map, i, rows);
  }
  LOCKSTEP_RETURN_IF_ERROR(ForEachPortion(map, [&](const Portion& portion) {
    bytes += static_cast<int64_t>(portion.size());
    return absl::OkStatus();
  }));
  return bytes;
}

absl::Status ReadPortion(const Portion& portion,
                         const std::vector<ShardAccess*>& servers,
                         std::vector<char>& bytes) {
  bytes.resize(portion.size());
  std::vector<char> piece_bytes;
  for (size_t i = 0; i < portion.block.pieces.size(); ++i) {
    const TensorBlock::Piece& piece = portion.block.pieces[i];
    piece_bytes.resize(piece.count * portion.element);
    LOCKSTEP_RETURN_IF_ERROR(servers[piece.server]->ReadSnapshot(
        portion.StretchOf(piece), absl::MakeSpan(piece_bytes)));
    ForEachStretch(portion.block, i, portion.element,
                   [&](size_t in_block, size_t in_piece, size_t size) {
                     std::memcpy(&bytes[in_block], &piece_bytes[in_piece],
                                 size);
                   });
  }
  return absl::OkStatus();
}

// Reads `any` portion, or if all tables grow a key. If this process hung,
// another chief may have gone back meanwhile: then the servers refuse this last
// read. The other chief also removes unfinished checkpoints, but that may fail,
// for example because of a volume's permissions.
absl::Status ReadOnceMore(const StateMap& map, const JobSnapshot& snapshot,
                          const std::optional<Portion>& any,
                          const std::vector<ShardAccess*>& servers,
                          std::vector<char>& bytes) {
  return any.has_value() ? ReadPortion(*any, servers, bytes)
                         : ReadAnyKey(map, snapshot, servers);
}

// Writes to the servers that have the portion: all that take part if they are
// mirrors.
absl::Status WritePortion(const Portion& portion,
                          const std::vector<char>& bytes, bool mirrored,
                          const std::vector<ShardAccess*>& servers) {
  std::vector<char> piece_bytes;
  for (size_t i = 0; i < portion.block.pieces.size(); ++i) {
    const TensorBlock::Piece& piece = portion.block.pieces[i];
    piece_bytes.resize(piece.count * portion.element);
    ForEachStretch(portion.block, i, portion.element,
                   [&](size_t in_block, size_t in_piece, size_t size) {
                     std::memcpy(&piece_bytes[in_piece], &bytes[in_block],
                                 size);
                   });
    for (size_t server = 0; server < servers.size(); ++server) {
      const bool has_it = mirrored
                              ? servers[server] != nullptr
                              : server == static_cast<size_t>(piece.server);
      if (!has_it) continue;
      LOCKSTEP_RETURN_IF_ERROR(
          servers[server]->WriteParts(portion.StretchOf(piece), piece_bytes));
    }
  }
  return absl::OkStatus();
}

// Writes to the portion what a file has in its place under `name`.
absl::Status RestorePortion(const SafetensorsReader& file,
                            const std::string& name, const Portion& portion,
                            bool mirrored,
                            const std::vector<ShardAccess*>& servers,
                            std::vector<char>& bytes) {
  bytes.resize(portion.size());
  LOCKSTEP_RETURN_IF_ERROR(
      file.ReadAt(name, portion.offset(), absl::MakeSpan(bytes)));
  return WritePortion(portion, bytes, mirrored, servers);
}

using VisitPortion = std::function<absl::Status(const Portion& portion,
                                                std::vector<char>& bytes)>;

// Visits all portions, several at once. Stops at the first error.
absl::Status VisitPortions(const StateMap& map, const VisitPortion& visit,
                           const OnTransferred& on_transferred = {}) {
  std::vector<Portion> portions;
  LOCKSTEP_RETURN_IF_ERROR(ForEachPortion(map, [&](Portion portion) {
    portions.push_back(std::move(portion));
    return absl::OkStatus();
  }));
  int64_t total = 0;
  for (const Portion& portion : portions) {
    total += static_cast<int64_t>(portion.size());
  }
  // The other threads may take all portions before this one has its first.
  if (on_transferred) LOCKSTEP_RETURN_IF_ERROR(on_transferred(0, total));
  std::atomic<size_t> next{0};
  std::atomic<int64_t> done{0};
  Mutex mutex;
  absl::Status status;
  CallAtOnce(kBlocksAtOnce, [&, caller = std::this_thread::get_id()](int) {
    // Only the caller's thread reports, so that the callback needs no lock.
    const bool reports = on_transferred && std::this_thread::get_id() == caller;
    std::vector<char> bytes;
    for (size_t i = next++; i < portions.size(); i = next++) {
      absl::Status visited = visit(portions[i], bytes);
      done += static_cast<int64_t>(portions[i].size());
      if (reports) visited.Update(on_transferred(done, total));
      if (visited.ok()) continue;
      // The other threads end after the portion they are at.
      next = portions.size();
      MutexLock lock(mutex);
      status.Update(visited);
    }
  });
  return status;
}

// A moving average begins at the value that its variable begins with.
bool BeginsAsValue(const StateMap& map, const Portion& portion) {
  return portion.tensor == 0 ||
         map.slots[portion.variable][portion.tensor - 1] == kMovingAverageName;
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

// The momentum of RMSProp has the second slot's name, and that of centered
// RMSProp the third's, whose second slot is a mean of gradients.
absl::Status CheckMomentum(const CheckpointReader& checkpoint,
                           const StateMap& map, size_t variable) {
  const std::vector<std::string>& slots = map.slots[variable];
  const auto wants = [&slots](absl::string_view slot) {
    return std::find(slots.begin(), slots.end(), slot) != slots.end();
  };
  const std::string third =
      TensorNameOf(map.plan.variables[variable].name, "RMSProp_2");
  if (!wants("RMSProp_1") || wants("RMSProp_2") ||
      checkpoint.optimizer().Find(third) == nullptr) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the checkpoint of step ", checkpoint.manifest().global_step, " has \"",
      third,
      "\", a slot of centered RMSProp, but optimizer.centered is false; "
      "set it to true, or choose another checkpoint.directory"));
}

absl::Status CheckTensors(const CheckpointReader& checkpoint,
                          const StateMap& map) {
  CheckpointTensors wanted;
  for (size_t i = 0; i < map.plan.variables.size(); ++i) {
    const VariableSpec& variable = map.plan.variables[i];
    LOCKSTEP_RETURN_IF_ERROR(CheckMomentum(checkpoint, map, i));
    if (variable.grows()) {
      LOCKSTEP_RETURN_IF_ERROR(CheckGrowingTable(checkpoint, map, i));
      continue;
    }
    if (variable.is_table() && checkpoint.FileOf(map.KeysName(i)).ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the checkpoint of step ", checkpoint.manifest().global_step,
          " has \"", variable.name,
          "\" as a growing table; restore with the "
          "model.row_limit of the job that wrote it, or choose another "
          "checkpoint.directory"));
    }
    AddVariable(map, i, variable.shape, wanted);
  }
  AddScalars(map, wanted);
  for (const TensorSpec& tensor : wanted.model) {
    LOCKSTEP_RETURN_IF_ERROR(CheckTensor(checkpoint, tensor));
  }
  for (const TensorSpec& tensor : wanted.optimizer) {
    LOCKSTEP_RETURN_IF_ERROR(CheckTensor(checkpoint, tensor));
  }
  return absl::OkStatus();
}

}  // namespace

OnTransferred WithProgress(
    std::string what, const Clock& clock,
    std::function<absl::Status(const std::string&)> say) {
  return [what = std::move(what), &clock, say = std::move(say),
          began = clock.Now()](int64_t done, int64_t total) {
    const double seconds = absl::ToDoubleSeconds(clock.Now() - began);
    return say(absl::StrCat(what, ProgressText(done, total, seconds)));
  };
}

absl::StatusOr<std::string> SaveCheckpoint(
    const CheckpointStore& store, const Manifest& manifest, const StateMap& map,
    const JobSnapshot& snapshot, const std::vector<ShardAccess*>& servers,
    const OnTransferred& on_transferred) {
  const std::vector<float>& scalars = snapshot.scalars;
  if (scalars.size() != map.scalars.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("scalars: ", scalars.size(), " values for ",
                     map.scalars.size(), " names"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointTensors tensors,
                            Tensors(map, snapshot));
  absl::StatusOr<std::unique_ptr<CheckpointWriter>> begun =
      store.Begin(manifest.global_step, tensors);
  LOCKSTEP_RETURN_IF_ERROR(OfVolume(begun.status()));
  const std::unique_ptr<CheckpointWriter> writer = *std::move(begun);
  std::vector<char> bytes;
  std::optional<Portion> any;
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t total, BytesOf(map, [&](size_t i) {
                              return CountRows(map, i, snapshot);
                            }));
  int64_t done = 0;
  const auto report = [&](int64_t more) {
    done += more;
    return on_transferred ? on_transferred(done, total) : absl::OkStatus();
  };
  LOCKSTEP_RETURN_IF_ERROR(report(0));
  LOCKSTEP_RETURN_IF_ERROR(
      ForEachPortion(map, [&](const Portion& portion) -> absl::Status {
        any.emplace(portion);
        LOCKSTEP_RETURN_IF_ERROR(ReadPortion(portion, servers, bytes));
        SafetensorsWriter& file =
            portion.tensor == 0 ? writer->model() : writer->optimizer();
        LOCKSTEP_RETURN_IF_ERROR(
            OfVolume(file.WriteAt(portion.name, portion.offset(), bytes)));
        return report(static_cast<int64_t>(portion.size()));
      }));
  for (size_t i = 0; i < map.plan.variables.size(); ++i) {
    if (!map.plan.variables[i].grows()) continue;
    LOCKSTEP_RETURN_IF_ERROR(
        SaveGrowingTable(map, i, snapshot, servers, *writer, report));
  }
  for (size_t i = 0; i < map.scalars.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(OfVolume(writer->optimizer().WriteAt(
        map.scalars[i], 0,
        absl::MakeConstSpan(reinterpret_cast<const char*>(&scalars[i]),
                            sizeof(float)))));
  }
  LOCKSTEP_RETURN_IF_ERROR(OfVolume(
      writer->optimizer().WriteInt64(kGlobalStep, manifest.global_step)));
  LOCKSTEP_RETURN_IF_ERROR(ReadOnceMore(map, snapshot, any, servers, bytes));
  LOCKSTEP_RETURN_IF_ERROR(OfVolume(writer->Commit(manifest)));
  return writer->files();
}

absl::StatusOr<std::vector<float>> RestoreCheckpoint(
    const CheckpointReader& checkpoint, const StateMap& map,
    const std::vector<ShardAccess*>& servers,
    const OnTransferred& on_transferred) {
  // First: a checkpoint that does not fit must not overwrite anything.
  LOCKSTEP_RETURN_IF_ERROR(CheckTensors(checkpoint, map));
  std::vector<float> scalars(map.scalars.size());
  for (size_t i = 0; i < scalars.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        checkpoint.Read(map.scalars[i], absl::MakeSpan(&scalars[i], 1)));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t total, BytesOf(map, [&](size_t i) {
                              return StoredRows(checkpoint, map, i);
                            }));
  const auto report = [&](int64_t done) {
    return on_transferred ? on_transferred(done, total) : absl::OkStatus();
  };
  int64_t done = 0;
  LOCKSTEP_RETURN_IF_ERROR(VisitPortions(
      map,
      [&](const Portion& portion, std::vector<char>& bytes) -> absl::Status {
        LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsReader* file,
                                  checkpoint.FileOf(portion.name));
        return RestorePortion(*file, portion.name, portion, map.plan.mirrored,
                              servers, bytes);
      },
      [&](int64_t so_far, int64_t of_variables) {
        done = of_variables;  // once all of them are visited
        return report(so_far);
      }));
  for (size_t i = 0; i < map.plan.variables.size(); ++i) {
    if (!map.plan.variables[i].grows()) continue;
    LOCKSTEP_RETURN_IF_ERROR(RestoreGrowingTable(
        checkpoint, map, i, servers,
        [&](int64_t more) { return report(done += more); }));
  }
  return scalars;
}

absl::Status CopyState(const StateMap& map, ShardAccess& from,
                       const std::vector<ShardAccess*>& to,
                       const OnTransferred& on_transferred) {
  const std::vector<ShardAccess*> donors(map.plan.mirrored ? to.size() : 0,
                                         &from);
  if (donors.empty()) {
    return absl::InternalError(
        "a server can take the state of another only where both are mirrors");
  }
  return VisitPortions(
      map,
      [&](const Portion& portion, std::vector<char>& bytes) -> absl::Status {
        Portion here = portion;
        // Every mirror has every part, so all pieces come from the one donor.
        for (TensorBlock::Piece& piece : here.block.pieces) piece.server = 0;
        LOCKSTEP_RETURN_IF_ERROR(ReadPortion(here, donors, bytes));
        return WritePortion(here, bytes, /*mirrored=*/true, to);
      },
      on_transferred);
}

absl::StatusOr<int> WriteInitialValues(const SafetensorsReader& values,
                                       const StateMap& map,
                                       const std::vector<ShardAccess*>& servers,
                                       const OnTransferred& on_transferred) {
  int found = 0;
  for (const VariableSpec& variable : map.plan.variables) {
    const StoredTensor* stored = values.Find(variable.name);
    if (stored == nullptr) continue;
    ++found;
    const TensorType type = ToTensorType(variable.dtype);
    if (!variable.grows() && stored->type == type &&
        stored->shape == variable.shape) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        values.path(), " has \"", variable.name, "\" as ",
        TensorTypeName(stored->type), ShapeString(stored->shape),
        "; the model has ", TensorTypeName(type), ShapeString(variable.shape),
        variable.grows() ? " as a growing table" : "",
        "; leave it out of the file, or change the model"));
  }
  LOCKSTEP_RETURN_IF_ERROR(VisitPortions(
      map,
      [&](const Portion& portion, std::vector<char>& bytes) {
        const std::string& name = map.plan.variables[portion.variable].name;
        if (!BeginsAsValue(map, portion) || values.Find(name) == nullptr) {
          return absl::OkStatus();
        }
        return RestorePortion(values, name, portion, map.plan.mirrored, servers,
                              bytes);
      },
      on_transferred));
  return found;
}

}  // namespace lockstep::chief
