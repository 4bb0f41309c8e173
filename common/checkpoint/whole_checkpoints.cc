#include "common/checkpoint/whole_checkpoints.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/step_directory.h"

namespace lockstep {

bool WholeCheckpoints::IsDamage(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInvalidArgument:  // no regular file
    case absl::StatusCode::kNotFound:         // removed meanwhile
      return true;
    default:
      return false;
  }
}

std::string WholeCheckpoints::FilesOf(int64_t step) const {
  return FileMetadata(
      absl::StrCat(store_.directory(), "/", StepDirectoryName(step)));
}

absl::Status WholeCheckpoints::Check(int64_t step) {
  // Taken before Verify(): a change during the check then leads to another
  // check, never to a stale answer.
  std::string files = FilesOf(step);
  const auto known = known_.find(step);
  if (known != known_.end() && known->second.files == files) {
    return known->second.status;
  }
  const absl::Status status = Read(step);
  known_.erase(step);
  // Other errors come from this process or its machine and may be temporary.
  if (status.ok() || IsDamage(status)) {
    known_[step] = {std::move(files), status};
  }
  return status;
}

absl::Status WholeCheckpoints::Read(int64_t step) {
  const absl::Status status = store_.Verify(step);
  if (!absl::IsUnknown(status)) {  // the code of EIO
    unread_since_.erase(step);
    return status;
  }
  const absl::Time now = clock_.Now();
  const absl::Time since = unread_since_.try_emplace(step, now).first->second;
  if (now - since < kReadPatience) {
    return absl::UnavailableError(status.message());
  }
  return absl::DataLossError(status.message());
}

void WholeCheckpoints::Wrote(int64_t step, std::string files) {
  known_[step] = {std::move(files), absl::OkStatus()};
}

void WholeCheckpoints::FoundDamaged(int64_t step, const absl::Status& why) {
  known_[step] = {FilesOf(step), absl::DataLossError(why.message())};
}

absl::StatusOr<WholeCheckpoints::Newest> WholeCheckpoints::FindNewest() {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<int64_t> steps,
                            ListStepDirectories(store_.directory()));
  Newest newest;
  for (; !steps.empty(); steps.pop_back()) {
    const absl::Status whole = Check(steps.back());
    if (whole.ok()) {
      LOCKSTEP_ASSIGN_OR_RETURN(CheckpointReader reader,
                                store_.Open(steps.back()));
      newest.reader.emplace(std::move(reader));
      return newest;
    }
    // Resuming at an older checkpoint because of, say, a missing right would
    // lose steps that are there.
    if (!IsDamage(whole)) return whole;
    newest.damaged.push_back({steps.back(), whole});
  }
  // No checkpoint at all: the job begins at step 0.
  if (newest.damaged.empty()) return newest;
  const Damaged& first = newest.damaged.front();
  return absl::DataLossError(absl::StrCat(
      "checkpoint.directory: ", store_.directory(), " has ",
      newest.damaged.size(), " checkpoints and none is whole; that of step ",
      first.step, ": ", first.why.message(),
      "; put a whole one there, or begin anew at step 0 with --fresh, which "
      "sets these aside"));
}

absl::StatusOr<std::vector<int64_t>> WholeCheckpoints::Prune(int64_t keep) {
  const absl::StatusOr<std::vector<int64_t>> removed =
      store_.Prune(keep, [this](int64_t step) { return Check(step); });
  // Also after an error, which may follow some removals.
  const absl::StatusOr<std::vector<int64_t>> left =
      ListStepDirectories(store_.directory());
  if (!left.ok()) return removed;
  const auto is_gone = [&left](const auto& entry) {
    return !std::binary_search(left->begin(), left->end(), entry.first);
  };
  std::erase_if(known_, is_gone);
  std::erase_if(unread_since_, is_gone);
  return removed;
}

}  // namespace lockstep
