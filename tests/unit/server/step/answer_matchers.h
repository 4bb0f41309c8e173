#ifndef LOCKSTEP_TESTS_UNIT_SERVER_STEP_ANSWER_MATCHERS_H_
#define LOCKSTEP_TESTS_UNIT_SERVER_STEP_ANSWER_MATCHERS_H_

#include <cstdint>
#include <ostream>

#include "gmock/gmock.h"
#include "server/step/gate.h"

// Matchers for the answers of a Gate, each for the wait of one ticket.
namespace lockstep::server {

inline void PrintTo(const Gate::Answer& answer, std::ostream* out) {
  *out << "{ticket " << answer.ticket << ", outcome "
       << static_cast<int>(answer.outcome) << ", step " << answer.step
       << ", slot " << answer.slot << ", attempt " << answer.attempt << "}";
}

}  // namespace lockstep::server

namespace lockstep::testing {

MATCHER_P2(TokenFor, ticket, step, "is a token") {
  return arg.ticket == static_cast<uint64_t>(ticket) &&
         arg.outcome == server::Gate::Outcome::kToken && arg.step == step &&
         arg.slot == 0;
}

MATCHER_P3(SlotTokenFor, ticket, step, slot, "is a token for a share") {
  return arg.ticket == static_cast<uint64_t>(ticket) &&
         arg.outcome == server::Gate::Outcome::kToken && arg.step == step &&
         arg.slot == slot;
}

MATCHER_P2(RedoFor, ticket, attempt, "asks for the gradient again") {
  return arg.ticket == static_cast<uint64_t>(ticket) &&
         arg.outcome == server::Gate::Outcome::kRedo && arg.attempt == attempt;
}

MATCHER_P(CancelledFor, ticket, "is cancelled") {
  return arg.ticket == static_cast<uint64_t>(ticket) &&
         arg.outcome == server::Gate::Outcome::kCancelled;
}

MATCHER_P(FinishedFor, ticket, "says that training has ended") {
  return arg.ticket == static_cast<uint64_t>(ticket) &&
         arg.outcome == server::Gate::Outcome::kFinished;
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_SERVER_STEP_ANSWER_MATCHERS_H_
