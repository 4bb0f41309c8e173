#ifndef LOCKSTEP_SERVER_SHARD_LOST_NEWS_H_
#define LOCKSTEP_SERVER_SHARD_LOST_NEWS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "server/shard/shard.h"

namespace lockstep::server {

// LostNews decides whether a chief that waits for a step must be told at once
// of workers whose connection has ended, since they may hold up the step.
//
// Threads: not thread-safe.
class LostNews {
 public:
  // False in the usual case: no worker is lost, and none was reported before.
  bool MayBeNews(const std::vector<int>& lost) const {
    return !lost.empty() || !told_.lost.empty();
  }

  // Returns true if the chief must be told now, and records the news as told:
  // the lost workers that may hold up the attempt, the step or its members
  // differ from those of the last call that returned true. `members` are those
  // of the step, ascending; nullopt: the server does not know them, and all
  // workers count as members. `lost` must be ascending.
  bool TakeNews(int64_t step, int64_t attempt,
                const std::optional<std::vector<int>>& members,
                std::vector<int> lost);
  // As above, about the step at hand of `shard`.
  bool TakeNews(Shard& shard, std::vector<int> lost);

 private:
  // The last state of a step in which the chief was told of lost workers.
  struct Told {
    int64_t step = 0;
    int64_t attempt = 0;
    std::vector<int> members = {};
    std::vector<int> lost = {};
    bool operator==(const Told&) const = default;
  };

  Told told_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_LOST_NEWS_H_
