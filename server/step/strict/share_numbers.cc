#include "server/step/strict/share_numbers.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lockstep::server {
namespace {

bool SamePass(const Pass& a, const Pass& b) {
  return a.worker == b.worker && a.incarnation == b.incarnation &&
         a.pass == b.pass;
}

}  // namespace

const ShareNumbers::Copy* ShareNumbers::Find(const Pass& pass) const {
  const auto& copies = numbers_[pass.slot].copies;
  const auto copy = std::find_if(
      copies.begin(), copies.end(),
      [&](const Copy& other) { return SamePass(other.pass, pass); });
  return copy == copies.end() ? nullptr : &*copy;
}

ShareNumbers::Copy* ShareNumbers::Find(const Pass& pass) {
  return const_cast<Copy*>(std::as_const(*this).Find(pass));
}

void ShareNumbers::Unlist(int number) {
  const Number& listed = numbers_[number];
  out_.erase({listed.copies.size(), listed.handed_out, number});
}

void ShareNumbers::List(int number) {
  const Number& listed = numbers_[number];
  if (listed.done) return;
  const size_t copies = listed.copies.size();
  if (copies == 0) {
    first_free_ = std::min(first_free_, number);
  } else if (copies < kMaxCopies) {
    out_.emplace(copies, listed.handed_out, number);
  }
}

std::optional<int> ShareNumbers::Choose() {
  // The lowest free number comes before any duplicate.
  for (; first_free_ < count(); ++first_free_) {
    const Number& number = numbers_[first_free_];
    if (!number.done && number.copies.empty()) return first_free_;
  }
  if (out_.empty()) return std::nullopt;
  return std::get<2>(*out_.begin());
}

void ShareNumbers::Add(const Pass& pass, bool claimed) {
  Unlist(pass.slot);
  Number& number = numbers_[pass.slot];
  if (number.copies.empty()) number.handed_out = ++taken_;
  number.copies.push_back({pass, claimed});
  held_[pass.worker].insert(pass.slot);
  List(pass.slot);
}

template <typename Ends>
size_t ShareNumbers::Remove(int number, const Ends& ends) {
  Unlist(number);
  size_t removed = 0;
  std::vector<Copy>& copies = numbers_[number].copies;
  for (size_t i = 0; i < copies.size();) {
    if (!ends(copies[i])) {
      ++i;
      continue;
    }
    const int worker = copies[i].pass.worker;
    copies.erase(copies.begin() + static_cast<ptrdiff_t>(i));
    ++removed;
    // An older incarnation may have a copy of the same number.
    const bool holds = std::any_of(
        copies.begin(), copies.end(),
        [&](const Copy& copy) { return copy.pass.worker == worker; });
    if (!holds) held_[worker].erase(number);
  }
  List(number);
  return removed;
}

std::optional<int> ShareNumbers::Take(const Pass& ended) {
  Pass next = ended;
  ++next.pass;
  for (const int held : held_[ended.worker]) {
    // A repeated request: the worker has the number already, but has not seen
    // the answer.
    next.slot = held;
    const Copy* copy = Find(next);
    if (copy != nullptr && !copy->claimed) return held;
  }
  Release(ended.worker, ended.incarnation);
  const std::optional<int> chosen = Choose();
  if (!chosen.has_value()) return std::nullopt;
  next.slot = *chosen;
  Add(next, /*claimed=*/false);
  return chosen;
}

bool ShareNumbers::Claim(const Pass& pass) {
  if (numbers_[pass.slot].done) return false;
  if (Copy* copy = Find(pass); copy != nullptr) {
    copy->claimed = true;
    return true;
  }
  // An earlier process of ps 0 handed the number out, or Restart() has removed
  // the copy.
  Release(pass.worker, pass.incarnation);
  Add(pass, /*claimed=*/true);
  return true;
}

void ShareNumbers::Finish(const Pass& pass) {
  const Copy* copy = Find(pass);
  // Without a claim in this attempt the servers have not taken the gradient.
  if (copy == nullptr || !copy->claimed) return;
  numbers_[pass.slot].finisher = pass;
  numbers_[pass.slot].done = true;
  Remove(pass.slot, [](const Copy&) { return true; });
}

bool ShareNumbers::IsDoneByOther(const Pass& pass) const {
  return IsDone(pass.slot) && !SamePass(numbers_[pass.slot].finisher, pass);
}

bool ShareNumbers::IsClaimed(const Pass& pass) const {
  if (IsDone(pass.slot)) return true;
  const Copy* copy = Find(pass);
  return copy != nullptr && copy->claimed;
}

bool ShareNumbers::Release(int worker, uint64_t incarnation) {
  size_t released = 0;
  const std::set<int> held = held_[worker];  // Remove() changes it
  for (const int number : held) {
    released += Remove(number, [&](const Copy& copy) {
      return copy.pass.worker == worker && copy.pass.incarnation <= incarnation;
    });
  }
  return released > 0;
}

void ShareNumbers::Restart() {
  for (int number = 0; number < count(); ++number) {
    numbers_[number].done = false;
    // The gradient of a claimed copy may be on some servers only. Its worker
    // waits, and claims the number again.
    Remove(number, [](const Copy& copy) { return copy.claimed; });
  }
}

void ShareNumbers::Reset() {
  for (Number& number : numbers_) number = {};
  first_free_ = 0;
  out_.clear();
  held_.clear();
}

}  // namespace lockstep::server
