#include "server/shard/lost_news.h"

#include <algorithm>
#include <utility>

namespace lockstep::server {

bool LostNews::TakeNews(int64_t step, int64_t attempt,
                        const std::optional<std::vector<int>>& members,
                        std::vector<int> lost) {
  Told state{step, attempt};
  if (members.has_value()) {
    state.members = *members;
    std::erase_if(lost, [&](int worker) {
      return !std::binary_search(members->begin(), members->end(), worker);
    });
  }
  if (!MayBeNews(lost)) return false;
  state.lost = std::move(lost);
  // Once is enough; the next take would be answered at once, too.
  if (state == told_) return false;
  told_ = std::move(state);
  return true;
}

bool LostNews::TakeNews(Shard& shard, std::vector<int> lost) {
  const Engine& engine = shard.engine();
  // Other servers than ps 0 do not know the set.
  std::optional<std::vector<int>> members;
  if (const Gate* gate = shard.gate(); gate != nullptr) {
    members = gate->Members();
  }
  return TakeNews(engine.step(), engine.arrivals().attempt, members,
                  std::move(lost));
}

}  // namespace lockstep::server
