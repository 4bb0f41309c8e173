#include "server/step/strict/worker_roll.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/incarnation_bounds.h"
#include "common/wire/status_detail.h"

namespace lockstep::server {

bool WorkerRoll::TakesPart(int worker) const {
  if (workers_.empty()) return worker >= 0 && worker < total_;
  return std::binary_search(workers_.begin(), workers_.end(), worker);
}

absl::Status WorkerRoll::CheckTakesPart(const Pass& pass) const {
  if (TakesPart(pass.worker)) return absl::OkStatus();
  if (!workers_.empty()) {
    // It may have called just before the others were named.
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", pass.worker, " is none of the ", count(),
                     " workers that take part now; register again"));
  }
  return absl::InvalidArgumentError(absl::StrCat("worker ", pass.worker,
                                                 " is none of the ", count(),
                                                 " replicas of the job"));
}

absl::Status WorkerRoll::CheckIncarnation(const Pass& pass) const {
  const auto known = newest_.find(pass.worker);
  LOCKSTEP_RETURN_IF_ERROR(
      CheckDrawn(TaskId{TaskType::kWorker, pass.worker}, pass.incarnation,
                 known == newest_.end() ? 0 : known->second.incarnation));
  if (!IsReplaced(pass)) return absl::OkStatus();
  const uint64_t newest = newest_.at(pass.worker).incarnation;
  return WithNewestIncarnation(
      absl::FailedPreconditionError(absl::StrCat(
          "worker ", pass.worker, " has been replaced: incarnation ", newest,
          " is newer than ", pass.incarnation)),
      newest);
}

bool WorkerRoll::Note(const Pass& pass, bool waits) {
  const Newest now{pass.incarnation, pass.pass, waits};
  Newest& newest = newest_[pass.worker];
  // Ordered by incarnation, then pass; of one pass the wait is newer than the
  // announcement. A repeated call is equal, and is answered again.
  newest = std::max(newest, now);
  return newest == now;
}

uint64_t WorkerRoll::Expire(int worker, uint64_t incarnation) {
  Newest& newest = newest_[worker];
  // Calls of the dead incarnation may still arrive, and must be refused; those
  // of its successor are newer.
  newest = std::max(newest, Newest{incarnation + 1, 0, false});
  return newest.incarnation;
}

bool WorkerRoll::IsReplaced(const Pass& pass) const {
  const auto newest = newest_.find(pass.worker);
  return newest != newest_.end() &&
         pass.incarnation < newest->second.incarnation;
}

uint64_t WorkerRoll::NewestIncarnation(int worker) const {
  const auto newest = newest_.find(worker);
  if (newest == newest_.end()) return 0;
  // Expire() records incarnation + 1, from which no call has come: a chief that
  // asks for the newest one must get the dead incarnation itself.
  const bool is_expected = newest->second.pass == 0 && !newest->second.waits;
  return newest->second.incarnation - (is_expected ? 1 : 0);
}

absl::Status CheckBegun(const Pass& pass, int64_t global_step) {
  if (pass.local_step <= global_step) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "local_step ", pass.local_step, " has not begun; the global step is ",
      global_step, ": the job has gone back; register with the chief again"));
}

}  // namespace lockstep::server
