#ifndef LOCKSTEP_SERVER_STEP_STRICT_MEAN_SQUARES_H_
#define LOCKSTEP_SERVER_STEP_STRICT_MEAN_SQUARES_H_

#include <cstddef>
#include <optional>
#include <vector>

namespace lockstep::server {

// MeanSquares collects one server's contribution to the norm of the mean
// gradients of an attempt: by part, the sum of the squares of its mean
// gradient.
//
//   Measured(), once for each part -> complete() -> Decide() -> decided()
//
// Threads: not thread-safe.
class MeanSquares {
 public:
  explicit MeanSquares(size_t num_parts) : parts_(num_parts) {}

  // Forgets all sums: another attempt or step begins.
  void Reset();

  // Records the sum of squares of a part whose gradients have all arrived. Must
  // be called once per part and attempt.
  void Measured(int part, double squares);
  bool has(int part) const { return parts_[part].has_value(); }
  // True if every part is measured; false if the server has no parts.
  bool complete() const { return !parts_.empty() && missing() == 0; }
  // Returns the sum over all measured parts, in the order of the parts: it does
  // not depend on the order in which they were measured.
  double Sum() const;

  // Records that the norm over all servers is known and the updates begin.
  void Decide() { decided_ = true; }
  bool decided() const { return decided_; }
  // True if all gradients have arrived and the updates wait for the norm.
  bool waits() const { return complete() && !decided_; }

 private:
  size_t missing() const { return parts_.size() - measured_; }

  std::vector<std::optional<double>> parts_;
  size_t measured_ = 0;
  bool decided_ = false;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_MEAN_SQUARES_H_
