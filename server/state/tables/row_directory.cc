#include "server/state/tables/row_directory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/state/tables/stored_word.h"

namespace lockstep::server {
namespace {

// Keys are at least 0, so their complements are negative.
bool IsFresh(int64_t word) { return word < 0; }
int64_t KeyOf(int64_t word) { return IsFresh(word) ? ~word : word; }

}  // namespace

absl::StatusOr<std::unique_ptr<RowDirectory>> RowDirectory::Open(
    absl::Span<std::byte> memory) {
  std::unique_ptr<RowDirectory> directory(new RowDirectory(memory));
  LOCKSTEP_RETURN_IF_ERROR(directory->ReadList());
  return directory;
}

absl::Status RowDirectory::ReadList() {
  // The count bounds the reads below.
  if (size() < 0 || size() > capacity_) {
    return absl::DataLossError(
        absl::StrCat("directory of rows: says ", size(), " rows of at most ",
                     capacity_, "; the state file is damaged, remove it"));
  }
  rows_.reserve(size());
  for (int64_t row = 0; row < size(); ++row) {
    const int64_t key = KeyOf(words_[1 + row]);
    if (rows_.emplace(key, row).second) continue;
    return absl::DataLossError(absl::StrCat(
        "directory of rows: rows ", rows_[key], " and ", row,
        " are both of key ", key, "; the state file is damaged, remove it"));
  }
  return absl::OkStatus();
}

std::optional<int64_t> RowDirectory::Find(int64_t key) const {
  const auto found = rows_.find(key);
  if (found == rows_.end()) return std::nullopt;
  return found->second;
}

int64_t RowDirectory::KeyAt(int64_t row) const {
  return KeyOf(words_[1 + row]);
}

void RowDirectory::Add(int64_t key) {
  const int64_t row = size();
  // The count makes the row exist, so it is written last.
  StoreWord(&words_[1 + row], ~key);
  StoreWord(&words_[0], row + 1);
  rows_.emplace(key, row);
}

void RowDirectory::Keep(int64_t row) {
  if (row < 0 || row >= size()) return;
  StoreWord(&words_[1 + row], KeyOf(words_[1 + row]));
}

std::vector<std::pair<int64_t, int64_t>> RowDirectory::Kept() const {
  std::vector<std::pair<int64_t, int64_t>> kept;
  for (int64_t row = 0; row < size(); ++row) {
    if (!IsFresh(words_[1 + row])) kept.emplace_back(words_[1 + row], row);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

void RowDirectory::Clear() {
  StoreWord(&words_[0], 0);
  rows_.clear();
}

}  // namespace lockstep::server
