#include "tests/conformance/simulation/world.h"

#include "absl/strings/str_cat.h"

namespace lockstep::simulation {
namespace {

constexpr size_t kTraceLines = 60;

}  // namespace

bool World::RunOne() {
  if (queue_.empty()) return false;
  const Scheduled next = queue_.top();
  queue_.pop();
  now_ = std::max(now_, next.time);
  ++num_events_;
  const Event event = std::move(events_[next.slot]);
  events_[next.slot] = nullptr;
  free_slots_.push_back(next.slot);
  event();
  return true;
}

void World::After(absl::Duration delay, Event event) {
  uint32_t slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<uint32_t>(events_.size());
    events_.push_back(std::move(event));
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
    events_[slot] = std::move(event);
  }
  queue_.push({now_ + delay, ++next_order_, slot});
}

int World::Start(int place, Event before_event, Event after_event) {
  Process process;
  process.place = place;
  process.before_event = std::move(before_event);
  process.after_event = std::move(after_event);
  processes_.push_back(std::move(process));
  const int number = static_cast<int>(processes_.size()) - 1;
  at_[place] = number;
  return number;
}

void World::End(int number) {
  Process& process = processes_[number];
  process.alive = false;
  process.before_event = nullptr;
  process.after_event = nullptr;
  process.deferred.clear();
  std::map<uint64_t, Event> broken;
  broken.swap(process.served);
  for (const auto& [id, fail] : broken) fail();
}

void World::Hang(int process, absl::Duration time) {
  processes_[process].hung_until = now_ + time;
  After(time, [this, process] { Wake(process); });
}

void World::Wake(int number) {
  Process& process = processes_[number];
  if (process.hung_until > now_) return;  // it was stopped again
  std::vector<Event> deferred;
  deferred.swap(process.deferred);
  for (Event& event : deferred) {
    AfterFor(number, absl::ZeroDuration(), std::move(event));
  }
}

void World::WakeUp(int process) {
  processes_[process].hung_until = now_;
  Wake(process);
}

void World::WakeAll() {
  for (size_t number = 0; number < processes_.size(); ++number) {
    WakeUp(static_cast<int>(number));
  }
}

void World::AfterFor(int process, absl::Duration delay, Event event) {
  After(delay,
        [this, process, event = std::move(event)] { RunFor(process, event); });
}

void World::Cut(int from, int to, absl::Duration time) {
  cuts_[{from, to}] = now_ + time;
}

bool World::IsCut(int from, int to) const {
  const auto cut = cuts_.find({from, to});
  return cut != cuts_.end() && cut->second > now_;
}

int World::At(int place) const {
  const auto found = at_.find(place);
  if (found == at_.end() || !processes_[found->second].alive) return -1;
  return found->second;
}

// Mostly short; now and then, where there is chaos, longer than a lease.
absl::Duration World::Latency() {
  if (chaos && Chance(5)) return RandomDuration(absl::Seconds(2));
  if (chaos && Chance(50)) return RandomDuration(absl::Milliseconds(60));
  return absl::Microseconds(50) + RandomDuration(absl::Milliseconds(1));
}

void World::Trace(const std::string& line) {
  trace_.push_back(
      absl::StrCat(absl::FormatDuration(absl::Trunc(now_ - absl::UnixEpoch(),
                                                    absl::Microseconds(1))),
                   " ", line));
  if (trace_.size() > kTraceLines) trace_.pop_front();
}

}  // namespace lockstep::simulation
