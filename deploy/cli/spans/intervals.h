#ifndef LOCKSTEP_DEPLOY_CLI_SPANS_INTERVALS_H_
#define LOCKSTEP_DEPLOY_CLI_SPANS_INTERVALS_H_

#include <cstdint>
#include <map>

namespace lockstep::cli {

// Intervals is a set of moments, made of half-open intervals.
//
// Threads: not thread-safe.
class Intervals {
 public:
  // Adds [begin, end).
  void Add(int64_t begin, int64_t end);

  // Returns how much of [begin, end) is in the set.
  int64_t Overlap(int64_t begin, int64_t end) const;

 private:
  std::map<int64_t, int64_t> ends_;  // by beginning; they do not touch
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SPANS_INTERVALS_H_
