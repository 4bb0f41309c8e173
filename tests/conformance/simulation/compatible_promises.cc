#include "tests/conformance/simulation/compatible_promises.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/step/compatible/compatible_engine.h"

namespace lockstep::simulation {

using server::PushOutcome;

CompatiblePromises::CompatiblePromises(std::vector<int> parts_of_server,
                                       int replicas, Promises& promises)
    : replicas_(replicas), promises_(promises) {
  checkpoints_[0];
  for (const int parts : parts_of_server) {
    servers_.emplace_back().parts.resize(parts);
    checkpoints_[0].emplace_back(parts);  // the initial values
  }
}

void CompatiblePromises::Open(int server, int64_t step) {
  Server& known = servers_[server];
  known.open = true;
  const auto found = checkpoints_.find(step);
  if (found == checkpoints_.end()) {
    if (known.parts.empty()) return;
    promises_.Break(absl::StrCat("P5: ps ", server, " opens at step ", step,
                                 ", of which there is no checkpoint"));
    return;
  }
  for (size_t part = 0; part < known.parts.size(); ++part) {
    Part opened;
    opened.state = found->second[server][part];
    opened.states = std::move(known.parts[part].states);
    opened.states[step] = opened.state;
    opened.step = step;
    opened.updates = std::move(known.parts[part].updates);
    known.parts[part] = std::move(opened);
  }
}

void CompatiblePromises::OnPush(int server, const Pass& pass, int part,
                                float gradient, PushOutcome outcome) {
  Part& known = servers_[server].parts[part];
  const std::pair number(pass.incarnation, pass.pass);
  PushOutcome must = PushOutcome::kAccepted;
  if (const auto newest = known.newest.find(pass.worker);
      newest != known.newest.end() && number <= newest->second) {
    must = PushOutcome::kDuplicate;
  } else if (pass.local_step < known.step) {
    must = PushOutcome::kStale;
  }
  if (outcome != must) {
    promises_.Break(absl::StrCat("P2, P3: a gradient of worker ", pass.worker,
                                 " of step ", pass.local_step, " on ps ",
                                 server, ", part ", part, " of step ",
                                 known.step, ", is ", static_cast<int>(outcome),
                                 ", must be ", static_cast<int>(must)));
  }
  if (must == PushOutcome::kStale) {
    drops_.push_back({pass.worker, pass.pass, pass.local_step, known.step});
    // An older pass that comes late is dropped as one that was there before.
    known.newest[pass.worker] = {pass.incarnation, pass.pass - 1};
  } else if (must == PushOutcome::kAccepted) {
    known.newest[pass.worker] = number;
    known.gradients.emplace_back(pass, gradient);
    counted_.emplace(pass.worker, pass.incarnation, pass.pass);
  }
}

void CompatiblePromises::UpdatePart(const Server& server, Part& part) {
  const int needed = server.settings.replicas_to_aggregate > 0
                         ? server.settings.replicas_to_aggregate
                         : replicas_;
  if (static_cast<int>(part.gradients.size()) < needed) {
    promises_.Break(absl::StrCat("P3: a part is updated with ",
                                 part.gradients.size(), " of ", needed,
                                 " gradients"));
  }
  float sum = 0;
  Update update;
  for (const auto& [pass, gradient] : part.gradients) {
    sum += gradient;
    update.push_back(pass);
  }
  part.updates.push_back(std::move(update));
  const float mean = sum / static_cast<float>(part.gradients.size());
  part.state.momentum = part.state.momentum * Promises::kMomentum + mean;
  part.state.value -= static_cast<float>(server.settings.learning_rate_scale) *
                      part.state.momentum;
  part.states[++part.step] = part.state;
  part.gradients.clear();
}

void CompatiblePromises::OnServer(int server, server::Shard& shard) {
  Server& known = servers_[server];
  if (!shard.active()) {
    known.open = false;
    return;
  }
  const auto& engine =
      static_cast<const server::CompatibleEngine&>(shard.engine());
  if (!known.open) Open(server, engine.step());
  for (size_t i = 0; i < known.parts.size(); ++i) {
    Part& part = known.parts[i];
    const int index = static_cast<int>(i);
    const auto kept = static_cast<size_t>(engine.num_accumulated(index));
    if (kept == 0 && !part.gradients.empty()) UpdatePart(known, part);
    const PartState has = Promises::StateOf(shard, index);
    if (kept == part.gradients.size() && has == part.state) continue;
    promises_.Break(absl::StrCat(
        "P3: of step ", part.step, " on ps ", server, ", part ", i, " is ",
        has.value, " (", has.momentum, ") and has ", kept,
        " gradients, must be ", part.state.value, " (", part.state.momentum,
        ") and have ", part.gradients.size()));
  }
}

void CompatiblePromises::OnToken(int64_t step) {
  for (const Server& server : servers_) {
    for (const Part& part : server.parts) {
      if (!server.open || part.step >= step) continue;
      promises_.Break(absl::StrCat("P1: a token of step ", step,
                                   " is out, a part is of step ", part.step));
    }
  }
}

void CompatiblePromises::OnCheckpoint(
    int64_t step, const std::vector<std::vector<PartState>>& servers) {
  for (size_t k = 0; k < servers.size(); ++k) {
    for (size_t i = 0; i < servers[k].size(); ++i) {
      // Training goes on while a checkpoint is written: the part may be of a
      // later step by then.
      const std::map<int64_t, PartState>& states = servers_[k].parts[i].states;
      const auto state = states.find(step);
      if (state != states.end() && servers[k][i] == state->second) continue;
      promises_.Break(absl::StrCat("P10: the checkpoint of step ", step,
                                   " has other values of ps ", k, ", part ",
                                   i));
    }
  }
  checkpoints_[step] = servers;
}

bool CompatiblePromises::IsBeyond(int64_t step) const {
  for (const Server& server : servers_) {
    for (const Part& part : server.parts) {
      if (server.open && part.step > step) return true;
    }
  }
  return false;
}

void CompatiblePromises::OnClaim(const Pass& pass) {
  if (counted_.count({pass.worker, pass.incarnation, pass.pass}) > 0) return;
  promises_.Break(absl::StrCat("P2: worker ", pass.worker, " believes that ",
                               "its pass ", pass.pass, " has counted"));
}

}  // namespace lockstep::simulation
