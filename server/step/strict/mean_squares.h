#ifndef LOCKSTEP_SERVER_STEP_STRICT_MEAN_SQUARES_H_
#define LOCKSTEP_SERVER_STEP_STRICT_MEAN_SQUARES_H_

#include <cstddef>
#include <optional>
#include <vector>

namespace lockstep::server {

// MeanSquares collects what the norm of the mean gradients of an attempt needs
// of one server: by part, the sum of the squares of its mean gradient.
//
//   Measured(), once for each part -> complete() -> Decide() -> decided()
//
// Threads: not thread-safe.
class MeanSquares {
 public:
  explicit MeanSquares(size_t num_parts) : parts_(num_parts) {}

  // Another attempt or step begins.
  void Reset();

  // The gradients of a part are all in. Once per part and attempt.
  void Measured(int part, double squares);
  bool has(int part) const { return parts_[part].has_value(); }
  // Every part is measured; never where there is none.
  bool complete() const { return !parts_.empty() && missing() == 0; }
  // The sum over all parts that are measured, in the order of the parts, so
  // that it does not depend on the order in which they were measured.
  double Sum() const;

  // The norm over all servers is known: the update of the parts begins.
  void Decide() { decided_ = true; }
  bool decided() const { return decided_; }
  // All gradients are in, and the update waits for the norm.
  bool waits() const { return complete() && !decided_; }

 private:
  size_t missing() const { return parts_.size() - measured_; }

  std::vector<std::optional<double>> parts_;
  size_t measured_ = 0;
  bool decided_ = false;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_MEAN_SQUARES_H_
