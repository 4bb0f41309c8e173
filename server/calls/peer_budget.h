#ifndef LOCKSTEP_SERVER_CALLS_PEER_BUDGET_H_
#define LOCKSTEP_SERVER_CALLS_PEER_BUDGET_H_

#include <cstddef>
#include <memory>
#include <string>

namespace lockstep::server {

// PeerBudget bounds how many bytes of this process's memory each peer holds.
//
// Threads: safe to share.
class PeerBudget {
 public:
  explicit PeerBudget(size_t limit);

  size_t limit() const;

  // Counts `bytes` as the peer's until the returned object is gone, which may
  // outlive the budget. Null if the peer would then hold more than the limit;
  // but what is larger than that may be held alone.
  std::shared_ptr<void> Take(const std::string& peer, size_t bytes);

 private:
  struct State;

  const std::shared_ptr<State> state_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_CALLS_PEER_BUDGET_H_
