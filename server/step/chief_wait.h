#ifndef LOCKSTEP_SERVER_STEP_CHIEF_WAIT_H_
#define LOCKSTEP_SERVER_STEP_CHIEF_WAIT_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "server/step/engine.h"

namespace lockstep::server {

// ChiefWait is the chief's wait for a step, which Engine::Take() files. A chief
// has one wait at a time: a newer one withdraws the older one.
//
// Threads: not thread-safe.
class ChiefWait {
 public:
  bool is_filed() const { return ticket_.has_value(); }

  // Files a wait. Answers the previous one, which is withdrawn.
  void File(uint64_t ticket, ShardAnswers& answers) {
    Answer({}, answers);
    ticket_ = ticket;
  }
  // Ends a wait without an answer, unless another one is filed by now.
  void Cancel(uint64_t ticket) {
    if (ticket_ == ticket) ticket_.reset();
  }
  void Forget() { ticket_.reset(); }

  // Answers the wait, if one is filed, and ends it. Sets the answer's ticket.
  void Answer(TakeAnswer answer, ShardAnswers& answers) {
    if (!ticket_.has_value()) return;
    answer.ticket = *ticket_;
    answers.takes.push_back(std::move(answer));
    ticket_.reset();
  }

 private:
  std::optional<uint64_t> ticket_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_CHIEF_WAIT_H_
