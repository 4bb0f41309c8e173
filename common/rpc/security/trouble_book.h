#ifndef LOCKSTEP_COMMON_RPC_SECURITY_TROUBLE_BOOK_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_TROUBLE_BOOK_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace lockstep {

// TroubleBook keeps the current problems with certificates, for log, status and
// metrics. Peers without certificates can cause entries, so their number is
// limited, and a repeated one is logged once a minute. They take no room of the
// problems that this process finds by itself.
//
// Threads: safe to share.
class TroubleBook {
 public:
  static constexpr size_t kMost = 32;  // of peers, and as many of its own
  static constexpr absl::Duration kLogEvery = absl::Minutes(1);
  // An entry is no longer current this long after its last note.
  static constexpr absl::Duration kLasts = absl::Seconds(30);

  // Counts of calls that were refused, by method and role.
  using Denied = std::map<std::pair<std::string, std::string>, int64_t>;

  explicit TroubleBook(const Clock& clock = Clock::Real()) : clock_(clock) {}

  // Notes a problem, in one sentence. Returns true if it must be logged now.
  // Sentences of one `topic` are one problem, of which the last sentence
  // counts; without a topic each sentence is a problem of its own.
  bool Note(const std::string& sentence, absl::Duration log_every = kLogEvery,
            const std::string& topic = "") ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts a handshake that failed because of a certificate. As Note().
  bool NoteHandshake(const std::string& sentence) ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts a call that was refused. As Note(), but the sentence is not among
  // Current(): the problem is the caller's.
  bool NoteDenied(const std::string& method, const std::string& role,
                  const std::string& sentence) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the current problems, in the order of their first note.
  std::vector<std::string> Current() const ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t failed_handshakes() const ABSL_LOCKS_EXCLUDED(mutex_);
  Denied denied() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Origin { kSelf, kPeer };

  struct Entry {
    Origin origin = Origin::kSelf;
    std::string sentence;
    absl::Time first;
    absl::Time last;
    absl::Time logged = absl::InfinitePast();
    bool is_current = false;
  };

  bool Enter(Origin origin, const std::string& topic,
             const std::string& sentence, bool is_current,
             absl::Duration log_every) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsFull(Origin origin) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by topic
  int64_t failed_handshakes_ ABSL_GUARDED_BY(mutex_) = 0;
  Denied denied_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_TROUBLE_BOOK_H_
