#include "tests/conformance/simulation/lent_views.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace lockstep::simulation {
namespace {

float FloatOf(const server::LentBytes& lent) {
  float value = 0;
  std::memcpy(&value, lent.bytes.data(), sizeof(value));
  return value;
}

}  // namespace

std::shared_ptr<const worker::MappedValues> LentViews::Map(
    const std::shared_ptr<server::Shard>& shard) {
  if (mapped_shard_.lock() == shard) return mapped_;
  mapped_shard_ = shard;
  mapped_ = nullptr;
  const auto shared = shard->state().values().Share();
  if (!shared.ok()) return nullptr;
  auto mapped = worker::MappedValues::Open(shared->values, shared->counters);
  if (!mapped.ok()) {
    job_.promises.Break(
        absl::StrCat("values of ps ", server_,
                     " cannot be shared: ", mapped.status().ToString()));
    return nullptr;
  }
  mapped_ = std::make_shared<const worker::MappedValues>(*std::move(mapped));
  return mapped_;
}

LentValue LentViews::Read(int process,
                          const std::shared_ptr<server::Shard>& shard,
                          const server::LentBytes& lent, bool share) {
  // The answer names the place alone, so that nothing holds up an update.
  if (share && job_.options.shared_memory) {
    if (const auto memory = Map(shard)) return {0, memory, lent.place, process};
  }
  const float value = FloatOf(lent);
  if (job_.world.chaos && job_.world.Chance(300)) {
    views_.push_back({lent, value});
    if (job_.Has(PlantedBug::kReadersAreNotCounted)) {
      views_.back().lent.owner = nullptr;
    }
    const auto view = std::prev(views_.end());
    job_.world.AfterFor(process,
                        job_.world.RandomDuration(absl::Milliseconds(30)),
                        [this, view] { views_.erase(view); });
  }
  return {value};
}

// The views stay listed: each has an event that removes it.
void LentViews::BreakOff() {
  for (View& view : views_) view.lent = {};
}

void LentViews::Check() {
  for (const View& view : views_) {
    if (view.lent.bytes.empty()) continue;
    if (FloatOf(view.lent) == view.value) continue;
    job_.promises.Break(absl::StrCat("P4: a value that is read on ps ", server_,
                                     " has been written to"));
  }
}

}  // namespace lockstep::simulation
