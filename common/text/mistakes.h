#ifndef LOCKSTEP_COMMON_TEXT_MISTAKES_H_
#define LOCKSTEP_COMMON_TEXT_MISTAKES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace lockstep {

// Mistakes collects the errors of a document, so that its author can fix all of
// them at once.
//
// Threads: not thread-safe.
class Mistakes {
 public:
  // Largest number of messages in status().
  static constexpr size_t kShown = 20;

  // Adds the message of an error. Ignores OkStatus.
  void Add(const absl::Status& status);

  // Returns kInvalidArgument with one line per message, and a line with the
  // number of further messages; OkStatus if there are no messages.
  absl::Status status() const;

 private:
  std::vector<std::string> shown_;
  size_t count_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_MISTAKES_H_
