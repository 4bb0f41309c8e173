#include "tests/conformance/simulation/promises.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace lockstep::simulation {
namespace {

float ReadFloat(server::Shard& shard, int part, int tensor) {
  float value = 0;
  absl::Span<std::byte> bytes(reinterpret_cast<std::byte*>(&value),
                              sizeof(value));
  if (!shard.state().values().Read(part, tensor, bytes).ok()) return -1;
  return value;
}

// The sum of the gradients that there are: one after the other, or as a tree
// that is split at the largest power of two below its length.
std::optional<float> SumOf(absl::Span<const std::optional<float>> gradients,
                           bool tree) {
  if (gradients.empty()) return std::nullopt;
  if (gradients.size() == 1) return gradients[0];
  size_t first = gradients.size() - 1;
  if (tree) first = std::bit_floor(first);
  const std::optional<float> left = SumOf(gradients.first(first), tree);
  const std::optional<float> right = SumOf(gradients.subspan(first), tree);
  if (!left.has_value() || !right.has_value()) return left ? left : right;
  return *left + *right;
}

}  // namespace

Promises::Promises(std::vector<int> parts_of_server, const Kind& kind)
    : parts_of_server_(std::move(parts_of_server)),
      kind_(kind),
      servers_(parts_of_server_.size()) {
  for (int parts : parts_of_server_) {
    first_part_.push_back(num_parts_);
    num_parts_ += parts;
  }
  model_[0].resize(num_parts_);
}

PartState Promises::StateOf(server::Shard& shard, int part) {
  return {ReadFloat(shard, part, 0), ReadFloat(shard, part, 1)};
}

void Promises::Break(const std::string& what) { broken_.push_back(what); }

float Promises::Gradient(int64_t step, int worker, int slot, int part,
                         float value) {
  const uint64_t mixed = static_cast<uint64_t>(
      (((step * 31 + worker) * 31 + slot) * 31 + part) * 2654435761);
  return static_cast<float>((mixed >> 8) % 8) + value;
}

bool Promises::IsAbsent(int64_t step, int worker, int slot, int part) const {
  if (!kind_.sparse) return false;
  const uint64_t mixed = static_cast<uint64_t>(
      (((step * 37 + worker) * 37 + slot) * 37 + part) * 2654435761);
  return (mixed >> 9) % 5 < 3;
}

std::vector<std::optional<float>> Promises::MeanOf(
    int64_t step, const std::vector<int>& members) const {
  std::vector<std::optional<float>> mean(num_parts_);
  for (int part = 0; part < num_parts_; ++part) {
    int slot = 0;
    std::vector<std::optional<float>> gradients;
    for (size_t i = 0; i < members.size(); ++i) {
      slot = i > 0 && members[i] == members[i - 1] ? slot + 1 : 0;
      auto& gradient = gradients.emplace_back();
      if (IsAbsent(step, members[i], slot, part)) continue;
      gradient =
          Gradient(step, members[i], slot, part, model_.at(step)[part].value);
    }
    mean[part] = SumOf(gradients, kind_.shared);
    if (mean[part].has_value())
      *mean[part] /= static_cast<float>(members.size());
  }
  return mean;
}

float Promises::ScaleOf(const std::vector<std::optional<float>>& mean) const {
  if (!kind_.limits_mean) return 1;
  double squares = 0;
  for (size_t server = 0; server < parts_of_server_.size(); ++server) {
    double of_server = 0;
    for (int i = 0; i < parts_of_server_[server]; ++i) {
      const double x = mean[first_part_[server] + i].value_or(0);
      of_server += x * x;
    }
    squares += of_server;
  }
  return static_cast<float>(
      std::min(1.0, kLimit / (std::sqrt(squares) + 1e-6)));
}

std::vector<PartState> Promises::After(int64_t step,
                                       const std::vector<int>& members) const {
  std::vector<PartState> states = model_.at(step);
  const std::vector<std::optional<float>> mean = MeanOf(step, members);
  const float scale = ScaleOf(mean);
  for (int part = 0; part < num_parts_; ++part) {
    if (!mean[part].has_value()) continue;
    PartState& state = states[part];
    state.momentum = state.momentum * kMomentum + *mean[part] * scale;
    state.value -=
        static_cast<float>(settings_.learning_rate_scale) * state.momentum;
  }
  return states;
}

void Promises::OnCommit(int64_t step, const std::vector<int>& members) {
  if (step != committed_ + 1) {
    Break(absl::StrCat("P1: ps 0 commits step ", step, " after ", committed_));
    return;
  }
  const int size = settings_.replicas_to_aggregate;
  if (settings_.paused) {
    Break(absl::StrCat("P11: step ", step, " is committed in a paused job"));
  }
  // `members` of a shared step are its numbers, in any number of pushes.
  if (!kind_.in_place && !kind_.shared && size > 0 &&
      static_cast<int>(members.size()) != size) {
    Break(absl::StrCat("P11: step ", step, " has ", members.size(),
                       " gradients, must have ", size));
  }
  CheckMembers(step, members);
  if (!kind_.in_place) {
    model_[step] = After(committed_, members);
    sets_[step] = members;
  }
  committed_ = step;
}

void Promises::CheckMembers(int64_t step, const std::vector<int>& members) {
  if (kind_.mirrors == 0 || kind_.shared) return;
  std::vector<int> counted = members;
  std::sort(counted.begin(), counted.end());
  const std::vector<int> must = WorkersOf(settings_);
  if (counted == must) return;
  Break(absl::StrCat("P11: step ", step, " is made by workers ",
                     absl::StrJoin(counted, ","), ", must be by ",
                     absl::StrJoin(must, ",")));
}

std::vector<int> Promises::WorkersOf(const RunSettings& settings) const {
  if (!settings.workers.empty()) return settings.workers;
  std::vector<int> all(kind_.mirrors);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void Promises::OnActivate(int server, uint64_t epoch) {
  Server& known = servers_[server];
  if (known.opened != epoch) {
    known.opened_before = std::exchange(known.opened, epoch);
  }
  if (server == 0) opening_ = epoch;
}

void Promises::OnStateElsewhere() {
  if (!FirstHasState()) return;
  Break("P6: the job looks elsewhere for the state, which ps 0 has");
}

bool Promises::IsLate(size_t server, uint64_t epoch) const {
  const auto opened = [epoch](const Server& one) {
    return one.opened == epoch ? one.opened_before : one.opened;
  };
  const uint64_t own = opened(servers_[server]);
  return !FirstHasState() &&
         std::any_of(servers_.begin() + 1, servers_.end(),
                     [&](const Server& other) { return opened(other) > own; });
}

bool Promises::IsInRound(size_t server, uint64_t epoch) const {
  const auto round = rounds_.find(epoch);
  if (kind_.mirrors == 0 || round == rounds_.end()) return true;
  return std::count(round->second.begin(), round->second.end(),
                    static_cast<int>(server)) > 0;
}

void Promises::OnCommitOfTheLost(int64_t step, RunSettings settings,
                                 uint64_t epoch) {
  for (size_t k = 1; k < servers_.size(); ++k) {
    const Server& server = servers_[k];
    if (server.committed < 0 || server.committed >= step ||
        server.prepared >= step) {
      continue;
    }
    // The job may go on without one that is away, or that was away.
    if (!TakesPart(k) || !IsInRound(k, epoch) || IsLate(k, epoch)) continue;
    Break(absl::StrCat("P1: step ", step, " counts, which ps ", k,
                       " has not prepared"));
  }
  std::swap(settings_, settings);
  OnCommit(step, WorkersOf(settings_));
  std::swap(settings_, settings);
}

void Promises::OnOpen(int64_t step) {
  bool copied = false;
  for (size_t k = 1; k < servers_.size(); ++k) {
    const Server& server = servers_[k];
    copied |= TakesPart(k) && server.committed >= 0 &&
              std::max(server.committed, server.prepared) >= committed_;
  }
  if (kind_.mirrors > 0 && !going_back_ && copied) {
    if (step == committed_ + 1 && committed_ >= 0) {
      OnCommitOfTheLost(step, settings_before_, opening_);
    }
    servers_[0].lost = false;
  }
  if (going_back_ || servers_[0].lost) {
    ++history_;
    going_back_ = false;
    for (Server& server : servers_) server.lost = false;
  } else if (step < committed_) {
    Break(absl::StrCat("P5: ps 0 is back at step ", step, " of ", committed_));
  }
  for (size_t k = 0; k < servers_.size(); ++k) {
    if (TakesPart(k)) servers_[k].history = history_;
  }
  if (!kind_.in_place && model_.count(step) == 0) {
    Break(absl::StrCat("P5: ps 0 opens at step ", step, ", which never was"));
    return;
  }
  committed_ = step;
  opened_ = step;
  model_.erase(model_.upper_bound(step), model_.end());
  sets_.erase(sets_.upper_bound(step), sets_.end());
}

void Promises::OnServer(int server, server::Shard* shard) {
  if (shard == nullptr) return;
  const server::StepRecord record = shard->state().record();
  Server& known = servers_[server];
  if (record.committed_step != known.committed) known.checked = false;
  // A mirror that has lost its state is whole again.
  if (kind_.mirrors > 0 && server > 0 && shard->active()) known.lost = false;
  known.committed = record.committed_step;
  known.prepared = record.prepared_step;
  if (!shard->active()) known.checked = false;
  if (kind_.in_place) {
    // There is no record of a step that is prepared.
    if (shard->active()) known.prepared = shard->GetReport().prepared_step;
    return;
  }
  if (known.checked || !shard->active() || !HasParts(server)) return;
  known.checked = true;
  // While it was away, the job has gone back and made steps again.
  if (!TakesPart(server) && known.history != history_) return;
  CheckValues(server, *shard);
}

void Promises::CheckValues(int server, server::Shard& shard) {
  const int64_t step = servers_[server].committed;
  if (kind_.mirrors > 0 && TakesPart(server) && !going_back_ &&
      servers_[0].lost && committed_ >= 0 && step == committed_ + 1) {
    OnCommitOfTheLost(step, settings_, servers_[server].opened);
  }
  const auto found = model_.find(step);
  if (found == model_.end() ||
      (!going_back_ && !servers_[0].lost && step > committed_)) {
    if (committed_ < 0) return;  // it is being opened for the first time
    Break(absl::StrCat("P1: ps ", server, " has committed step ", step,
                       ", ps 0 is at ", committed_));
    return;
  }
  const int first = kind_.mirrors > 0 ? 0 : first_part_[server];
  const int parts = kind_.mirrors > 0 ? num_parts_ : parts_of_server_[server];
  for (int part = 0; part < parts; ++part) {
    const PartState has = StateOf(shard, part);
    const PartState& must = found->second[first + part];
    if (has == must) continue;
    Break(absl::StrCat("P3, ", kind_.shared ? "P12" : "P11", ": step ", step,
                       " on ps ", server, ", part ", part, " is ", has.value,
                       " (", has.momentum, "), must be ", must.value, " (",
                       must.momentum, "); its set is ",
                       absl::StrJoin(sets_[step], ",")));
  }
}

void Promises::OnStateLost(int server) {
  servers_[server] = Server();
  servers_[server].lost = true;
}

void Promises::OnMirrorDiscard(int server) {
  const auto has_state = [this](size_t k) {
    const Server& one = servers_[k];
    return TakesPart(k) && !one.lost && one.committed >= 0 &&
           std::max(one.committed, one.prepared) >= committed_;
  };
  const auto discards = static_cast<size_t>(server);
  bool another_has = false;
  for (size_t k = 0; k < servers_.size(); ++k) {
    another_has |= k != discards && has_state(k);
  }
  if (!has_state(discards) || IsLate(discards, servers_[server].epoch)) {
    going_back_ = going_back_ || !another_has;
    return;
  }
  if (!going_back_ && (history_ == 0 || committed_ != opened_)) {
    Break(absl::StrCat("P5: ps ", server,
                       " discards a copy of the step at hand"));
  }
  going_back_ = true;
}

void Promises::OnDiscard(int server) {
  if (kind_.mirrors > 0) return OnMirrorDiscard(server);
  // A history that another chief has begun, and in which nothing was committed
  // since, costs no step.
  bool missing = going_back_ || (history_ > 0 && committed_ == opened_);
  for (size_t k = 0; k < servers_.size(); ++k) {
    missing |= parts_of_server_[k] > 0 &&
               (servers_[k].committed < 0 || servers_[k].lost);
  }
  if (!missing) {
    Break(absl::StrCat("P5: ps ", server,
                       " discards its state, though all servers have theirs"));
  }
  going_back_ = true;
}

void Promises::OnToken(int64_t step) {
  if (step > committed_) {
    Break(absl::StrCat("P1: a token of step ", step, " is out, the global ",
                       "step is ", committed_));
  }
  for (size_t k = 0; k < servers_.size(); ++k) {
    const Server& server = servers_[k];
    if (!HasParts(k) || !TakesPart(k) || server.committed < 0) continue;
    if (server.committed >= step || server.prepared >= step) continue;
    // It was at the step when that was committed. A process that has ended
    // since leaves half of the next one, from which the servers go back.
    if (kind_.in_place && server.lost) continue;
    Break(absl::StrCat("P1: a token of step ", step, " is out, ps ", k,
                       " is at ", server.committed));
  }
}

void Promises::OnEpoch(int server, uint64_t epoch, uint64_t chief) {
  Server& known = servers_[server];
  // A chief that asks again may get the same epoch again.
  if (epoch < known.epoch || (epoch == known.epoch && chief != known.chief)) {
    Break(absl::StrCat("P5: epoch ", epoch, " of ps ", server,
                       " is drawn twice"));
  }
  known.epoch = epoch;
  known.chief = chief;
}

void Promises::OnObeyed(int server, uint64_t epoch, uint64_t chief) {
  Server& known = servers_[server];
  if (epoch < known.epoch || (epoch == known.epoch && chief != known.chief)) {
    Break(absl::StrCat("P5: ps ", server, " obeys the chief of epoch ", epoch,
                       " after epoch ", known.epoch, " was drawn"));
  }
  if (epoch <= known.epoch) return;
  known.epoch = epoch;
  known.chief = chief;
}

void Promises::OnAdmitted(int server, bool active) {
  if (active) return;
  Break(absl::StrCat("P5: ps ", server, " serves before it is open"));
}

void Promises::OnCompute(int history, int64_t step,
                         const std::vector<float>& values) {
  const auto found = model_.find(step);
  if (kind_.in_place) return;  // parts may be of several steps
  if (history != history_ || going_back_ || found == model_.end()) return;
  for (int part = 0; part < num_parts_; ++part) {
    if (values[part] == found->second[part].value) continue;
    Break(absl::StrCat("P4: of step ", step, ", part ", part, " was pulled as ",
                       values[part], ", is ", found->second[part].value));
  }
}

void Promises::OnClaim(int history, int64_t step, int worker) {
  // A shared step has no set of workers.
  if (kind_.shared || history != history_ || going_back_ || step <= opened_)
    return;
  const auto set = sets_.find(step);
  if (set == sets_.end()) return;
  if (std::count(set->second.begin(), set->second.end(), worker) > 0) return;
  Break(absl::StrCat("P2: worker ", worker, " believes that it counted for ",
                     "step ", step, ", whose set is ",
                     absl::StrJoin(set->second, ",")));
}

void Promises::OnCheckpoint(
    int64_t step, const std::vector<std::vector<PartState>>& servers) {
  const auto found = model_.find(step);
  if (kind_.in_place || found == model_.end()) return;  // of a lost history
  for (size_t k = 0; k < servers.size(); ++k) {
    for (size_t i = 0; i < servers[k].size(); ++i) {
      if (servers[k][i] == found->second[first_part_[k] + i]) continue;
      Break(absl::StrCat("P10: the checkpoint of step ", step,
                         " has other values of ps ", k, ", part ", i));
    }
  }
}

}  // namespace lockstep::simulation
