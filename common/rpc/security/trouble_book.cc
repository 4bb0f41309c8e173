#include "common/rpc/security/trouble_book.h"

#include <algorithm>
#include <cstddef>

namespace lockstep {

bool TroubleBook::Note(const std::string& sentence, absl::Duration log_every,
                       const std::string& topic) {
  MutexLock lock(mutex_);
  return Enter(Origin::kSelf, topic.empty() ? sentence : topic, sentence,
               /*is_current=*/true, log_every);
}

bool TroubleBook::NoteHandshake(const std::string& sentence) {
  MutexLock lock(mutex_);
  ++failed_handshakes_;
  return Enter(Origin::kPeer, sentence, sentence, /*is_current=*/true,
               kLogEvery);
}

bool TroubleBook::NoteDenied(const std::string& method, const std::string& role,
                             const std::string& sentence) {
  MutexLock lock(mutex_);
  ++denied_[{method, role}];
  return Enter(Origin::kPeer, sentence, sentence, /*is_current=*/false,
               kLogEvery);
}

bool TroubleBook::Enter(Origin origin, const std::string& topic,
                        const std::string& sentence, bool is_current,
                        absl::Duration log_every) {
  const absl::Time now = clock_.Now();
  if (entries_.count(topic) == 0 && IsFull(origin)) {
    // Old problems make room first.
    std::erase_if(entries_, [now](const auto& entry) {
      return now - entry.second.last > kLogEvery;
    });
    // Not logged either: hostile peers could fill the disk with different
    // sentences.
    if (IsFull(origin)) return false;
  }
  const auto [found, is_new] = entries_.try_emplace(topic);
  Entry& entry = found->second;
  if (is_new) entry.origin = origin;
  entry.sentence = sentence;
  // A problem that was over begins anew.
  if (is_new || now - entry.last > kLasts) entry.first = now;
  entry.last = now;
  entry.is_current = is_current;
  if (now - entry.logged < log_every) return false;
  entry.logged = now;
  return true;
}

bool TroubleBook::IsFull(Origin origin) const {
  const auto counts = [origin](const auto& entry) {
    return entry.second.origin == origin;
  };
  return std::count_if(entries_.begin(), entries_.end(), counts) >=
         static_cast<std::ptrdiff_t>(kMost);
}

std::vector<std::string> TroubleBook::Current() const {
  MutexLock lock(mutex_);
  const absl::Time now = clock_.Now();
  std::vector<std::pair<absl::Time, std::string>> current;
  for (const auto& [topic, entry] : entries_) {
    if (entry.is_current && now - entry.last <= kLasts) {
      current.emplace_back(entry.first, entry.sentence);
    }
  }
  // The oldest problem first: later ones are often its consequences.
  std::sort(current.begin(), current.end());
  std::vector<std::string> sentences;
  sentences.reserve(current.size());
  for (auto& [first, sentence] : current) sentences.push_back(sentence);
  return sentences;
}

int64_t TroubleBook::failed_handshakes() const {
  MutexLock lock(mutex_);
  return failed_handshakes_;
}

TroubleBook::Denied TroubleBook::denied() const {
  MutexLock lock(mutex_);
  return denied_;
}

}  // namespace lockstep
