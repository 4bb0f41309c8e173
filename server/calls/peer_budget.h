#ifndef LOCKSTEP_SERVER_CALLS_PEER_BUDGET_H_
#define LOCKSTEP_SERVER_CALLS_PEER_BUDGET_H_

#include <cstddef>
#include <memory>
#include <string>

namespace lockstep::server {

// PeerBudget bounds the bytes of this process's memory that each peer holds.
//
// Threads: safe to share.
class PeerBudget {
 public:
  explicit PeerBudget(size_t limit);

  size_t limit() const;

  // Counts `bytes` as held by the peer until the returned object is destroyed,
  // which may outlive the budget. Returns null if the peer would then hold more
  // than the limit; but a peer that holds nothing may take more than the limit
  // at once.
  std::shared_ptr<void> Take(const std::string& peer, size_t bytes);

 private:
  struct State;

  const std::shared_ptr<State> state_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_CALLS_PEER_BUDGET_H_
