#include "chief/checkpoint/growing_tables.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/checkpoint/key_merge.h"
#include "chief/checkpoint/volume_error.h"
#include "common/base/status_macros.h"
#include "common/numeric/dtype.h"

namespace lockstep::chief {
namespace {

// The elements of rows that one message carries, besides the keys.
constexpr int64_t kBlock = int64_t{1} << 18;

std::vector<Part> PartsOf(const StateMap& map, size_t variable) {
  std::vector<Part> parts;
  for (const Part& part : map.plan.parts) {
    if (part.variable == static_cast<int>(variable)) parts.push_back(part);
  }
  return parts;
}

// Rows of one table.
struct RowForm {
  int64_t width = 0;  // elements
  size_t size = 0;    // bytes
  size_t at_once = 1;

  explicit RowForm(const VariableSpec& table)
      : width(RowWidth(table.shape)),
        size(static_cast<size_t>(width) * ElementSize(table.dtype)),
        at_once(static_cast<size_t>(std::max<int64_t>(1, kBlock / width))) {}
};

// The keys of the first `rows` rows of the part.
absl::StatusOr<std::vector<int64_t>> ReadKeys(const Part& part, int64_t rows,
                                              ShardAccess& server) {
  std::vector<int64_t> keys(rows);
  for (int64_t first = 0; first < rows; first += kBlock) {
    LOCKSTEP_RETURN_IF_ERROR(server.ReadKeys(
        part.index, first,
        absl::MakeSpan(keys).subspan(first, std::min(kBlock, rows - first))));
  }
  return keys;
}

absl::Span<const char> BytesOf(const std::vector<int64_t>& keys) {
  return {reinterpret_cast<const char*>(keys.data()),
          keys.size() * sizeof(int64_t)};
}

// The block's rows of one tensor, in its order.
absl::Status ReadBlock(const std::vector<Part>& parts,
                       const KeyMerge::Block& block, int tensor,
                       const RowForm& row,
                       const std::vector<ShardAccess*>& servers,
                       std::vector<char>& bytes) {
  std::vector<std::vector<char>> pieces(parts.size());
  for (size_t p = 0; p < parts.size(); ++p) {
    if (block.count[p] == 0) continue;
    pieces[p].resize(block.count[p] * row.size);
    LOCKSTEP_RETURN_IF_ERROR(servers[parts[p].server]->ReadSnapshot(
        {parts[p].index, tensor, block.first[p] * row.width,
         block.count[p] * row.width},
        absl::MakeSpan(pieces[p])));
  }
  bytes.resize(block.keys.size() * row.size);
  std::vector<size_t> taken(parts.size());
  for (size_t i = 0; i < block.keys.size(); ++i) {
    const size_t p = block.part[i];
    std::memcpy(&bytes[i * row.size], &pieces[p][taken[p]], row.size);
    // Rows of a part are read in the part's order, which is that of the keys.
    taken[p] += row.size;
  }
  return absl::OkStatus();
}

absl::Status CheckKeys(const std::vector<int64_t>& keys, int64_t before,
                       const std::string& name) {
  for (const int64_t key : keys) {
    // Strictly ascending, which also excludes negative and repeated keys.
    if (key > before) {
      before = key;
      continue;
    }
    return absl::DataLossError(
        absl::StrCat("\"", name, "\" has key ", key, " after ", before,
                     "; keys ascend from 0: the checkpoint is damaged, use "
                     "another"));
  }
  return absl::OkStatus();
}

// Sends the rows of a block to the parts that have their keys.
absl::Status WriteBlock(const std::vector<Part>& parts,
                        const std::vector<int64_t>& keys, int tensor,
                        const RowForm& row, const std::vector<char>& bytes,
                        const std::vector<ShardAccess*>& servers) {
  std::vector<std::vector<int64_t>> part_keys(parts.size());
  std::vector<std::vector<char>> part_bytes(parts.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    // By the job's number of parts, which may differ from that of the
    // checkpoint.
    const int64_t p = PartOfKey(keys[i], static_cast<int64_t>(parts.size()));
    part_keys[p].push_back(keys[i]);
    part_bytes[p].insert(part_bytes[p].end(), &bytes[i * row.size],
                         &bytes[i * row.size] + row.size);
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    if (part_keys[p].empty()) continue;
    LOCKSTEP_RETURN_IF_ERROR(servers[parts[p].server]->WriteRows(
        parts[p].index, tensor, part_keys[p], part_bytes[p]));
  }
  return absl::OkStatus();
}

// Reads bytes of a checkpoint's tensor from `offset` on.
absl::Status ReadOn(const CheckpointReader& checkpoint, const std::string& name,
                    uint64_t offset, absl::Span<char> bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsReader* file,
                            checkpoint.FileOf(name));
  return file->ReadAt(name, offset, bytes);
}

absl::Status Refuse(const CheckpointReader& checkpoint, const std::string& name,
                    const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat("the checkpoint of step ", checkpoint.manifest().global_step,
                   " has ", why, " \"", name,
                   "\"; restore with the model that wrote it, or choose "
                   "another checkpoint.directory"));
}

}  // namespace

absl::StatusOr<int64_t> CountRows(const StateMap& map, size_t variable,
                                  const JobSnapshot& snapshot) {
  int64_t count = 0;
  for (const Part& part : PartsOf(map, variable)) {
    const auto server = static_cast<size_t>(part.server);
    const auto index = static_cast<size_t>(part.index);
    if (server >= snapshot.rows.size() ||
        index >= snapshot.rows[server].size() ||
        snapshot.rows[server][index] < 0 ||
        snapshot.rows[server][index] > part.count) {
      return absl::InternalError(
          absl::StrCat("ps ", server, " has not said how many rows of \"",
                       map.plan.variables[variable].name, "\" it has copied"));
    }
    count += snapshot.rows[server][index];
  }
  return count;
}

int64_t BytesOfRows(const StateMap& map, size_t variable, int64_t rows) {
  const auto tensors = static_cast<int64_t>(map.slots[variable].size()) + 1;
  const auto row =
      static_cast<int64_t>(RowForm(map.plan.variables[variable]).size);
  return rows * (static_cast<int64_t>(sizeof(int64_t)) + tensors * row);
}

absl::Status SaveGrowingTable(const StateMap& map, size_t variable,
                              const JobSnapshot& snapshot,
                              const std::vector<ShardAccess*>& servers,
                              CheckpointWriter& writer, OnRows on_rows) {
  const std::vector<Part> parts = PartsOf(map, variable);
  std::vector<std::vector<int64_t>> keys;
  for (const Part& part : parts) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        keys.emplace_back(),
        ReadKeys(part, snapshot.rows[part.server][part.index],
                 *servers[part.server]));
  }
  // Merged by key, so that the file has the same bytes for any number of
  // servers.
  KeyMerge merge(std::move(keys));
  const RowForm row(map.plan.variables[variable]);
  std::vector<char> bytes;
  for (uint64_t first = 0;;) {
    const KeyMerge::Block block = merge.Next(row.at_once);
    if (block.keys.empty()) return absl::OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(OfVolume(writer.model().WriteAt(
        map.KeysName(variable), first * sizeof(int64_t), BytesOf(block.keys))));
    for (size_t tensor = 0; tensor <= map.slots[variable].size(); ++tensor) {
      LOCKSTEP_RETURN_IF_ERROR(ReadBlock(parts, block, static_cast<int>(tensor),
                                         row, servers, bytes));
      SafetensorsWriter& file =
          tensor == 0 ? writer.model() : writer.optimizer();
      LOCKSTEP_RETURN_IF_ERROR(OfVolume(file.WriteAt(
          map.TensorName(variable, tensor), first * row.size, bytes)));
    }
    first += block.keys.size();
    LOCKSTEP_RETURN_IF_ERROR(
        on_rows(BytesOfRows(map, variable, std::ssize(block.keys))));
  }
}

absl::Status ReadAnyKey(const StateMap& map, const JobSnapshot& snapshot,
                        const std::vector<ShardAccess*>& servers) {
  for (size_t i = 0; i < map.plan.variables.size(); ++i) {
    if (!map.plan.variables[i].grows()) continue;
    LOCKSTEP_RETURN_IF_ERROR(CountRows(map, i, snapshot).status());
    for (const Part& part : PartsOf(map, i)) {
      if (snapshot.rows[part.server][part.index] == 0) continue;
      return ReadKeys(part, 1, *servers[part.server]).status();
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGrowingTable(const CheckpointReader& checkpoint,
                               const StateMap& map, size_t variable) {
  const VariableSpec& table = map.plan.variables[variable];
  const std::string keys = map.KeysName(variable);
  const auto file = checkpoint.FileOf(keys);
  if (!file.ok()) return Refuse(checkpoint, keys, "no");
  const StoredTensor& stored = *(*file)->Find(keys);
  if (stored.type != TensorType::kI64 || stored.shape.size() != 1) {
    return Refuse(checkpoint, keys, "something that is no list of keys as");
  }
  const int64_t rows = stored.shape[0];
  if (rows > table.shape[0]) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the checkpoint of step ", checkpoint.manifest().global_step, " has ",
        rows, " rows of \"", table.name, "\", which grows to ", table.shape[0],
        "; raise model.row_limit, or the row_limit that the user's program "
        "gives the table"));
  }
  // The checkpoint holds only rows that steps have changed.
  std::vector<int64_t> shape = table.shape;
  shape[0] = rows;
  for (size_t tensor = 0; tensor <= map.slots[variable].size(); ++tensor) {
    const std::string name = map.TensorName(variable, tensor);
    const auto of_tensor = checkpoint.FileOf(name);
    if (!of_tensor.ok()) return Refuse(checkpoint, name, "no");
    const StoredTensor& found = *(*of_tensor)->Find(name);
    if (found.type == ToTensorType(table.dtype) && found.shape == shape) {
      continue;
    }
    return Refuse(
        checkpoint, name,
        absl::StrCat(TensorTypeName(found.type), ShapeString(found.shape),
                     " and not ", TensorTypeName(ToTensorType(table.dtype)),
                     ShapeString(shape), " as"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> StoredRows(const CheckpointReader& checkpoint,
                                   const StateMap& map, size_t variable) {
  const std::string name = map.KeysName(variable);
  LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsReader* file,
                            checkpoint.FileOf(name));
  return file->Find(name)->shape[0];
}

absl::Status RestoreGrowingTable(const CheckpointReader& checkpoint,
                                 const StateMap& map, size_t variable,
                                 const std::vector<ShardAccess*>& servers,
                                 OnRows on_rows) {
  const std::vector<Part> parts = PartsOf(map, variable);
  const RowForm row(map.plan.variables[variable]);
  const std::string name = map.KeysName(variable);
  LOCKSTEP_ASSIGN_OR_RETURN(const auto rows,
                            StoredRows(checkpoint, map, variable));
  const auto end = static_cast<uint64_t>(rows);
  int64_t before = -1;
  std::vector<char> bytes;
  for (uint64_t first = 0; first < end; first += row.at_once) {
    std::vector<int64_t> keys(std::min<uint64_t>(row.at_once, end - first));
    LOCKSTEP_RETURN_IF_ERROR(
        ReadOn(checkpoint, name, first * sizeof(int64_t),
               absl::MakeSpan(reinterpret_cast<char*>(keys.data()),
                              keys.size() * sizeof(int64_t))));
    LOCKSTEP_RETURN_IF_ERROR(CheckKeys(keys, before, name));
    // Keys ascend across blocks, too.
    before = keys.back();
    bytes.resize(keys.size() * row.size);
    for (size_t tensor = 0; tensor <= map.slots[variable].size(); ++tensor) {
      LOCKSTEP_RETURN_IF_ERROR(ReadOn(checkpoint,
                                      map.TensorName(variable, tensor),
                                      first * row.size, absl::MakeSpan(bytes)));
      LOCKSTEP_RETURN_IF_ERROR(WriteBlock(parts, keys, static_cast<int>(tensor),
                                          row, bytes, servers));
    }
    LOCKSTEP_RETURN_IF_ERROR(
        on_rows(BytesOfRows(map, variable, std::ssize(keys))));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::chief
