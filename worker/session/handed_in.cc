#include "worker/session/handed_in.h"

namespace lockstep::worker {

void HandedIn::Begin(size_t num_variables) {
  ready_.assign(num_variables, false);
  absent_.assign(num_variables, false);
  taken_.assign(num_variables, false);
  num_ready_ = 0;
  unsent_ = num_variables;
}

void HandedIn::Add(size_t variable, bool absent) {
  absent_[variable] = absent;
  ready_[variable] = true;
  ++num_ready_;
}

std::optional<HandedIn::Gradient> HandedIn::NextToSend() {
  if (unsent_ == 0 || !ready_[unsent_ - 1]) return std::nullopt;
  --unsent_;
  return Gradient{unsent_, absent_[unsent_]};
}

}  // namespace lockstep::worker
