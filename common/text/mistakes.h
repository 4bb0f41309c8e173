#ifndef LOCKSTEP_COMMON_TEXT_MISTAKES_H_
#define LOCKSTEP_COMMON_TEXT_MISTAKES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace lockstep {

// Mistakes gathers what is wrong with a document, so that whoever wrote it can
// mend all of it at once.
class Mistakes {
 public:
  // Messages that status() has at most.
  static constexpr size_t kShown = 20;

  // Files the message of a failure. OkStatus is none.
  void Add(const absl::Status& status);

  // kInvalidArgument with a line for each message, and one that says how many
  // more there are; OkStatus where there are none.
  absl::Status status() const;

 private:
  std::vector<std::string> shown_;
  size_t count_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_MISTAKES_H_
