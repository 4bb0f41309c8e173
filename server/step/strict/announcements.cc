#include "server/step/strict/announcements.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockstep::server {

void Announcements::Add(const Pass& pass) {
  if (keys_.insert(KeyOf(pass)).second) passes_.push_back(pass);
}

template <typename Goes>
void Announcements::RemoveIf(const Goes& goes) {
  std::erase_if(passes_, [&](const Pass& pass) {
    if (!goes(pass)) return false;
    keys_.erase(KeyOf(pass));
    return true;
  });
}

void Announcements::Remove(int worker, uint64_t incarnation) {
  RemoveIf([&](const Pass& pass) {
    return pass.worker == worker && pass.incarnation <= incarnation;
  });
}

void Announcements::RemoveLeavers(const WorkerRoll& roll) {
  RemoveIf([&](const Pass& pass) { return !roll.TakesPart(pass.worker); });
}

void Announcements::Replace(size_t earlier, size_t later) {
  std::swap(passes_[earlier], passes_[later]);
  const auto replaced = passes_.begin() + static_cast<std::ptrdiff_t>(later);
  std::rotate(replaced, replaced + 1, passes_.end());
}

void Announcements::clear() {
  passes_.clear();
  keys_.clear();
}

bool Announcements::HasAmong(size_t count, const Pass& pass) const {
  // The cheaper question first: without backups it decides.
  if (!Has(pass)) return false;
  if (passes_.size() <= count) return true;
  const auto end = passes_.begin() + static_cast<std::ptrdiff_t>(count);
  return std::any_of(passes_.begin(), end,
                     [&](const Pass& other) { return Same(other, pass); });
}

bool Announcements::HasBefore(int worker, uint64_t incarnation) const {
  constexpr int64_t kFirstStep = std::numeric_limits<int64_t>::min();
  constexpr int kFirstShare = std::numeric_limits<int>::min();
  const auto oldest = keys_.lower_bound({worker, 0, kFirstStep, kFirstShare});
  return oldest != keys_.end() && std::get<0>(*oldest) == worker &&
         std::get<1>(*oldest) < incarnation;
}

size_t Announcements::PlaceOf(int worker, size_t count) const {
  const size_t end = std::min(count, passes_.size());
  for (size_t place = 0; place < end; ++place) {
    if (passes_[place].worker == worker) return place;
  }
  return count;
}

}  // namespace lockstep::server
