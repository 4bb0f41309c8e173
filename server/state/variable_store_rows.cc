// The part of VariableStore that has rows of growing tables.

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/status_detail.h"
#include "server/state/init/initializer.h"
#include "server/state/variable_store.h"

namespace lockstep {

absl::Status VariableStore::OpenDirectories() {
  directories_.resize(num_parts());
  for (size_t i = 0; i < num_parts(); ++i) {
    if (!part(i).grows) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(
        directories_[i],
        RowDirectory::Open(file_->bytes().subspan(layout_.DirectoryOffset(i),
                                                  layout_.DirectorySize(i))));
  }
  return absl::OkStatus();
}

absl::Status VariableStore::CheckKeys(size_t part,
                                      absl::Span<const int64_t> keys) const {
  const PartSpec& spec = this->part(part);
  const int64_t own = spec.offset / spec.row_width;
  for (const int64_t key : keys) {
    if (key >= 0 && PartOfKey(key, spec.row_stride) == own) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "table \"", variables_[spec.variable].name, "\": key ", key,
        key < 0 ? " is negative; keys count from 0"
                : absl::StrCat(" is not of part ", own, " of ", spec.row_stride,
                               ", which was asked")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> VariableStore::FindRows(
    size_t part, absl::Span<const int64_t> keys) const {
  std::vector<int64_t> rows;
  rows.reserve(keys.size());
  for (const int64_t key : keys) {
    const std::optional<int64_t> row = directories_[part]->Find(key);
    if (!row.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("table \"", variables_[this->part(part).variable].name,
                       "\" has no row of key ", key, " in part ", part,
                       "; pull the row before you push a gradient of it"));
    }
    rows.push_back(*row);
  }
  return rows;
}

absl::StatusOr<std::vector<int64_t>> VariableStore::NewKeys(
    size_t part, absl::Span<const int64_t> keys) const {
  const RowDirectory& directory = *directories_[part];
  absl::flat_hash_set<int64_t> seen;
  std::vector<int64_t> fresh;
  for (const int64_t key : keys) {
    if (directory.Find(key).has_value() || !seen.insert(key).second) continue;
    fresh.push_back(key);
  }
  const auto count = static_cast<int64_t>(fresh.size());
  if (count <= directory.capacity() - directory.size()) return fresh;
  const PartSpec& spec = this->part(part);
  const VariableSpec& table = variables_[spec.variable];
  return WithCause(
      absl::ResourceExhaustedError(absl::StrCat(
          "no room for more rows: table \"", table.name, "\" grows to ",
          table.shape[0], " rows; part ", spec.offset / spec.row_width, " of ",
          spec.row_stride, " has ", directory.size(), " of its ",
          directory.capacity(), " and needs ", count,
          " more; raise model.row_limit and go on from a checkpoint")),
      FailureCause::kNoRoomForRows);
}

absl::StatusOr<std::vector<int64_t>> VariableStore::MakeRows(
    size_t part, absl::Span<const int64_t> keys, uint64_t seed) {
  LOCKSTEP_RETURN_IF_ERROR(CheckKeys(part, keys));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> fresh,
                            NewKeys(part, keys));
  if (!fresh.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const InitialValues values,
        InitialValues::Make(variables_[this->part(part).variable], seed));
    const absl::Span<std::byte> table = Tensor(part, 0, CommittedBuffer(part));
    const size_t size = RowSize(part);
    for (const int64_t key : fresh) {
      const auto row = static_cast<size_t>(directories_[part]->size());
      LOCKSTEP_RETURN_IF_ERROR(
          values.FillRow(key, table.subspan(row * size, size)));
      directories_[part]->Add(key);
    }
  }
  return FindRows(part, keys);
}

absl::Status VariableStore::WriteRows(size_t part, size_t tensor,
                                      absl::Span<const int64_t> keys,
                                      uint64_t seed,
                                      absl::Span<const std::byte> bytes) {
  LOCKSTEP_RETURN_IF_ERROR(CheckStretch(part, tensor, 0, 0));
  LOCKSTEP_RETURN_IF_ERROR(CheckNotActive("overwrite"));
  if (directories_[part] == nullptr ||
      bytes.size() != keys.size() * RowSize(part)) {
    return absl::InvalidArgumentError(absl::StrCat(
        bytes.size(), " bytes for ", keys.size(), " rows of ",
        this->part(part).grows ? RowSize(part) : 0, " bytes of part ", part,
        directories_[part] == nullptr ? ", which does not grow" : ""));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> rows,
                            MakeRows(part, keys, seed));
  const size_t size = RowSize(part);
  std::byte* to = Tensor(part, tensor, CommittedBuffer(part)).data();
  const std::byte* from = bytes.data();
  for (const int64_t row : rows) {
    std::memcpy(to + static_cast<size_t>(row) * size, from, size);
    from += size;
    directories_[part]->Keep(row);
  }
  return absl::OkStatus();
}

}  // namespace lockstep
