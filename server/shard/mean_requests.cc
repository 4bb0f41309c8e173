#include "server/shard/mean_requests.h"

namespace lockstep::server {

std::vector<int> MeanRequests::Look(const std::shared_ptr<Shard>& shard,
                                    const Engine::MeansWanted& wanted) {
  if (shard_.lock() != shard || of_.step != wanted.step ||
      of_.attempt != wanted.attempt) {
    shard_ = shard;
    of_ = {wanted.step, wanted.attempt};
    called_.clear();
  }
  std::vector<int> parts;
  for (const int part : wanted.parts) {
    if (!called_.contains(part)) parts.push_back(part);
  }
  return parts;
}

void MeanRequests::Called(int first_part, int num_parts) {
  for (int i = 0; i < num_parts; ++i) called_.insert(first_part + i);
}

bool MeanRequests::MustRepeat(const absl::Status& status) {
  return !status.ok() && !absl::IsAborted(status);
}

bool MeanRequests::Failed(const StepAttempt& of, int first_part,
                          int num_parts) {
  if (of.step != of_.step || of.attempt != of_.attempt) return false;
  for (int i = 0; i < num_parts; ++i) called_.erase(first_part + i);
  return true;
}

}  // namespace lockstep::server
