// The means that StrictEngine exchanges with the other servers of a mirrored
// job.

#include <utility>

#include "common/base/status_macros.h"
#include "server/step/strict/strict_engine.h"

namespace lockstep::server {

absl::StatusOr<std::optional<std::vector<PartGradient>>> StrictEngine::Means(
    int64_t step, int64_t attempt, int first_part, int num_parts) const {
  LOCKSTEP_RETURN_IF_ERROR(
      mirror_.Check(first_part, num_parts, /*copied=*/false));
  MutexLock lock(mutex_);
  const absl::StatusOr<bool> at_hand =
      IsAtHand({step, attempt}, {step_, attempt_});
  // Another mirror may learn of a commit or of an attempt before this one does;
  // its call waits until this mirror gets there.
  if (!at_hand.ok()) return std::nullopt;
  if (!*at_hand) return absl::AbortedError("that attempt is over here");
  std::vector<PartGradient> means;
  for (int part = first_part; part < first_part + num_parts; ++part) {
    // All or none: a mirror asks for a range that it can take at once.
    if (!squares_.has(part)) return std::nullopt;
    means.push_back(updater_.LendMean(part));
  }
  return means;
}

absl::StatusOr<ShardAnswers> StrictEngine::AddMeans(
    int64_t step, int64_t attempt, int first_part,
    std::vector<PartGradient> means) {
  LOCKSTEP_RETURN_IF_ERROR(mirror_.Check(
      first_part, static_cast<int>(means.size()), /*copied=*/true));
  std::vector<PartWork> work;
  {
    MutexLock lock(mutex_);
    LOCKSTEP_ASSIGN_OR_RETURN(const bool at_hand,
                              IsAtHand({step, attempt}, {step_, attempt_}));
    if (!at_hand) return ShardAnswers();
    if (!failure_.ok()) return failure_;
    for (size_t i = 0; i < means.size(); ++i) {
      const int part = first_part + static_cast<int>(i);
      // The mean arrived before, in the answer to a call that was repeated.
      if (HasAll(part)) continue;
      work.push_back(BeginWork(PartWork::Kind::kKeep, part));
      work.back().gradients.push_back(std::move(means[i]));
    }
  }
  return Run(std::move(work));
}

Engine::MeansWanted StrictEngine::means_wanted() const {
  MutexLock lock(mutex_);
  MeansWanted wanted{step_, attempt_};
  for (size_t part = 0; part < parts_.size(); ++part) {
    if (mirror_.copied(part) && !HasAll(part)) {
      wanted.parts.push_back(static_cast<int>(part));
    }
  }
  return wanted;
}

void StrictEngine::OnMeanKept(const PartWork& done, std::vector<PartWork>& work,
                              ShardAnswers& answers) {
  squares_.Measured(done.part, done.squares);
  if (mirror_.mirrored() && !mirror_.copied(done.part))
    answers.means_changed = true;
  // Without a limit a part is updated as soon as its mean is known. With one
  // the take is answered with the squares when all means are kept; a server
  // that has all parts updates them in Run() instead.
  if (!limits_mean()) {
    work.push_back(BeginWork(PartWork::Kind::kApply, done.part));
  } else if (squares_.complete() && !options_.has_all_parts) {
    AnswerTake(absl::OkStatus(), answers);
  }
}

}  // namespace lockstep::server
