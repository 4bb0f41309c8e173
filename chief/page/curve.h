#ifndef LOCKSTEP_CHIEF_PAGE_CURVE_H_
#define LOCKSTEP_CHIEF_PAGE_CURVE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::chief {

// A point of a curve: the mean of some samples, at the last one's place.
struct CurvePoint {
  double step = 0;
  double unix_seconds = 0;
  double value = 0;

  bool operator==(const CurvePoint&) const = default;
};

// Curve keeps a curve over a whole job in at most kMostPoints points. When
// these are full, each two become their mean, and from then on each point is
// the mean of twice as many samples.
//
// Threads: not thread-safe.
class Curve {
 public:
  static constexpr size_t kMostPoints = 512;  // of 24 bytes

  Curve() = default;
  // Continues an earlier curve: `points` must ascend in their steps, and each
  // must be the mean of `stride` samples, a positive number.
  Curve(std::vector<CurvePoint> points, int64_t stride);

  // Adds a sample; ignores one that is not finite. If its step is before the
  // newest one, the job has gone back: later points are removed.
  void Add(const CurvePoint& sample);

  // Removes the points after `step`: the job has gone back to it.
  void GoBack(double step);

  // The points, ascending in their steps; the last one may be of fewer samples.
  std::vector<CurvePoint> Points() const;
  int64_t stride() const { return stride_; }

 private:
  void Thin();

  std::vector<CurvePoint> points_;
  int64_t stride_ = 1;
  // The samples of the next point: their number, the sum of values, the last.
  int64_t pending_ = 0;
  double sum_ = 0;
  CurvePoint last_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PAGE_CURVE_H_
