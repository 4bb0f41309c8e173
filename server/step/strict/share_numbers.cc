#include "server/step/strict/share_numbers.h"

#include <algorithm>
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

std::optional<int> ShareNumbers::Choose() const {
  std::optional<int> best;
  for (int i = 0; i < count(); ++i) {
    const Number& number = numbers_[i];
    if (number.done || number.copies.size() >= kMaxCopies) continue;
    // The lowest free number comes before any duplicate.
    if (number.copies.empty()) return i;
    const auto rank = [this](int n) {
      return std::pair(numbers_[n].copies.size(), numbers_[n].handed_out);
    };
    if (!best.has_value() || rank(i) < rank(*best)) best = i;
  }
  return best;
}

std::optional<int> ShareNumbers::Take(const Pass& ended) {
  Pass next = ended;
  ++next.pass;
  for (next.slot = 0; next.slot < count(); ++next.slot) {
    // A repeated request: the worker has the number already, but has not seen
    // the answer.
    const Copy* copy = Find(next);
    if (copy != nullptr && !copy->claimed) return next.slot;
  }
  Release(ended.worker, ended.incarnation);
  const std::optional<int> chosen = Choose();
  if (!chosen.has_value()) return std::nullopt;
  next.slot = *chosen;
  Number& number = numbers_[*chosen];
  if (number.copies.empty()) number.handed_out = ++taken_;
  number.copies.push_back({next});
  return chosen;
}

bool ShareNumbers::Claim(const Pass& pass) {
  Number& number = numbers_[pass.slot];
  if (number.done) return false;
  Copy* copy = Find(pass);
  if (copy == nullptr) {
    // An earlier process of ps 0 handed the number out, or Restart() has
    // removed the copy.
    Release(pass.worker, pass.incarnation);
    if (number.copies.empty()) number.handed_out = ++taken_;
    copy = &number.copies.emplace_back(Copy{pass});
  }
  copy->claimed = true;
  return true;
}

void ShareNumbers::Finish(const Pass& pass) {
  const Copy* copy = Find(pass);
  // Without a claim in this attempt the servers have not taken the gradient.
  if (copy == nullptr || !copy->claimed) return;
  numbers_[pass.slot].done = true;
  numbers_[pass.slot].finisher = pass;
  numbers_[pass.slot].copies.clear();
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
  for (Number& number : numbers_) {
    released += std::erase_if(number.copies, [&](const Copy& copy) {
      return copy.pass.worker == worker && copy.pass.incarnation <= incarnation;
    });
  }
  return released > 0;
}

void ShareNumbers::Restart() {
  for (Number& number : numbers_) {
    number.done = false;
    // The gradient of a claimed copy may be on some servers only. Its worker
    // waits, and claims the number again.
    std::erase_if(number.copies, [](const Copy& copy) { return copy.claimed; });
  }
}

void ShareNumbers::Reset() {
  for (Number& number : numbers_) number = {};
}

}  // namespace lockstep::server
