#include "server/state/table_store.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/status_detail.h"
#include "server/state/init/initializer.h"

namespace lockstep::server {

absl::Status TableStore::Open() {
  directories_.resize(tensors_.num_parts());
  for (size_t i = 0; i < tensors_.num_parts(); ++i) {
    if (!tensors_.part(i).grows) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(
        directories_[i], RowDirectory::Open(tensors_.file().bytes().subspan(
                             tensors_.layout().DirectoryOffset(i),
                             tensors_.layout().DirectorySize(i))));
  }
  return absl::OkStatus();
}

RowLog TableStore::Log(size_t part) const {
  return RowLog(tensors_.file().bytes().subspan(
      tensors_.layout().LogOffset(part), tensors_.layout().LogSize(part)));
}

void TableStore::BeginRows(size_t part, absl::Span<const int64_t> rows) {
  Log(part).Begin(rows);
  const size_t size = tensors_.RowSize(part);
  for (size_t tensor = 0; tensor < tensors_.num_tensors(part); ++tensor) {
    const std::byte* from = tensors_.Committed(part, tensor).data();
    std::byte* to = tensors_.Next(part, tensor).data();
    for (const int64_t row : rows) {
      std::memcpy(to, from + static_cast<size_t>(row) * size, size);
      to += size;
    }
  }
}

void TableStore::FinishRows(size_t part) {
  Log(part).Finish(tensors_.committed_step() + 1);
}

void TableStore::SkipRows(size_t part) { Log(part).Clear(); }

void TableStore::ApplyLogs() {
  for (size_t i = 0; i < tensors_.num_parts(); ++i) {
    // A log of another step is unfinished, or its rows were copied long ago.
    if (!tensors_.is_logged(i) || Log(i).step() != tensors_.committed_step())
      continue;
    const size_t size = tensors_.RowSize(i);
    const int64_t num_rows = tensors_.part(i).num_rows();
    for (size_t tensor = 0; tensor < tensors_.num_tensors(i); ++tensor) {
      // The rows lie in buffer 1 in the order of the log. A process killed here
      // leaves the log, and Open() of the store copies all of them again.
      const std::byte* from = tensors_.Tensor(i, tensor, 1).data();
      std::byte* to = tensors_.Tensor(i, tensor, 0).data();
      for (const int64_t row : Log(i).rows()) {
        if (row < 0 || row >= num_rows) break;  // the log is damaged
        std::memcpy(to + static_cast<size_t>(row) * size, from, size);
        from += size;
      }
    }
    if (directories_[i] == nullptr) continue;
    // After the copies: a kept row has the values of a committed step.
    for (const int64_t row : Log(i).rows()) directories_[i]->Keep(row);
  }
}

absl::Status TableStore::CheckKeys(size_t part,
                                   absl::Span<const int64_t> keys) const {
  const PartSpec& spec = tensors_.part(part);
  // The parts of a growing table have the rows in turn, so the first row is the
  // index of the part.
  const int64_t own = spec.offset / spec.row_width;
  for (const int64_t key : keys) {
    if (key >= 0 && PartOfKey(key, spec.row_stride) == own) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "table \"", tensors_.variable(part).name, "\": key ", key,
        key < 0 ? " is negative; keys count from 0"
                : absl::StrCat(" is not of part ", own, " of ", spec.row_stride,
                               ", which was asked")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> TableStore::FindRows(
    size_t part, absl::Span<const int64_t> keys) const {
  std::vector<int64_t> rows;
  rows.reserve(keys.size());
  for (const int64_t key : keys) {
    const std::optional<int64_t> row = directories_[part]->Find(key);
    if (!row.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("table \"", tensors_.variable(part).name,
                       "\" has no row of key ", key, " in part ", part,
                       "; pull the row before you push a gradient of it"));
    }
    rows.push_back(*row);
  }
  return rows;
}

absl::StatusOr<std::vector<int64_t>> TableStore::NewKeys(
    size_t part, absl::Span<const int64_t> keys) const {
  const RowDirectory& directory = *directories_[part];
  absl::flat_hash_set<int64_t> seen;
  std::vector<int64_t> fresh;
  for (const int64_t key : keys) {
    // A call may name a new key several times, and it gets one row.
    if (directory.Find(key).has_value() || !seen.insert(key).second) continue;
    fresh.push_back(key);
  }
  // All keys fit or none gets a row: the caller repeats the call as a whole.
  const auto count = static_cast<int64_t>(fresh.size());
  if (count <= directory.capacity() - directory.size()) return fresh;
  const PartSpec& spec = tensors_.part(part);
  const VariableSpec& table = tensors_.variable(part);
  return WithCause(
      absl::ResourceExhaustedError(absl::StrCat(
          "no room for more rows: table \"", table.name, "\" grows to ",
          table.shape[0], " rows; part ", spec.offset / spec.row_width, " of ",
          spec.row_stride, " has ", directory.size(), " of its ",
          directory.capacity(), " and needs ", count,
          " more; raise model.row_limit, or the row_limit that the user's "
          "program gives the table, and go on from a checkpoint")),
      FailureCause::kNoRoomForRows);
}

absl::StatusOr<std::vector<int64_t>> TableStore::MakeRows(
    size_t part, absl::Span<const int64_t> keys, uint64_t seed) {
  LOCKSTEP_RETURN_IF_ERROR(CheckKeys(part, keys));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> fresh,
                            NewKeys(part, keys));
  if (!fresh.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const InitialValues values,
        InitialValues::Make(tensors_.variable(part), seed));
    const absl::Span<std::byte> table =
        tensors_.Tensor(part, 0, tensors_.CommittedBuffer(part));
    const size_t size = tensors_.RowSize(part);
    for (const int64_t key : fresh) {
      // Values first, then the key: a process killed in between leaves no row
      // with other values than its initial ones.
      const auto row = static_cast<size_t>(directories_[part]->size());
      LOCKSTEP_RETURN_IF_ERROR(
          values.FillRow(key, table.subspan(row * size, size)));
      directories_[part]->Add(key);
    }
  }
  return FindRows(part, keys);
}

absl::Status TableStore::WriteRows(size_t part, size_t tensor,
                                   absl::Span<const int64_t> keys,
                                   uint64_t seed,
                                   absl::Span<const std::byte> bytes) {
  LOCKSTEP_RETURN_IF_ERROR(tensors_.CheckRange(part, tensor, 0, 0));
  // Before MakeRows(), which would leave new rows behind.
  LOCKSTEP_RETURN_IF_ERROR(tensors_.CheckNotActive("overwrite"));
  if (directories_[part] == nullptr ||
      bytes.size() != keys.size() * tensors_.RowSize(part)) {
    return absl::InvalidArgumentError(absl::StrCat(
        bytes.size(), " bytes for ", keys.size(), " rows of ",
        tensors_.part(part).grows ? tensors_.RowSize(part) : 0,
        " bytes of part ", part,
        directories_[part] == nullptr ? ", which does not grow" : ""));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> rows,
                            MakeRows(part, keys, seed));
  const size_t size = tensors_.RowSize(part);
  std::byte* to =
      tensors_.Tensor(part, tensor, tensors_.CommittedBuffer(part)).data();
  const std::byte* from = bytes.data();
  for (const int64_t row : rows) {
    std::memcpy(to + static_cast<size_t>(row) * size, from, size);
    from += size;
    directories_[part]->Keep(row);
  }
  return absl::OkStatus();
}

std::vector<size_t> TableStore::PlacesByKey(
    size_t part, absl::Span<const int64_t> rows) const {
  std::vector<std::pair<int64_t, size_t>> keys;
  keys.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    keys.emplace_back(directories_[part]->KeyAt(rows[i]), i);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<size_t> places;
  places.reserve(keys.size());
  for (const auto& [key, place] : keys) places.push_back(place);
  return places;
}

bool TableStore::Clear(size_t part) {
  if (directories_[part] == nullptr) return false;
  directories_[part]->Clear();
  return true;
}

}  // namespace lockstep::server
