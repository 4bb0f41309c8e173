#include "chief/page/curve.h"

#include <cmath>
#include <utility>

namespace lockstep::chief {

Curve::Curve(std::vector<CurvePoint> points, int64_t stride)
    : points_(std::move(points)), stride_(stride) {
  while (points_.size() >= kMostPoints) Thin();
}

void Curve::Add(const CurvePoint& sample) {
  if (!std::isfinite(sample.value)) return;
  GoBack(sample.step);
  sum_ = pending_ == 0 ? sample.value : sum_ + sample.value;
  last_ = sample;
  if (++pending_ < stride_) return;
  last_.value = sum_ / static_cast<double>(pending_);
  points_.push_back(last_);
  pending_ = 0;
  if (points_.size() >= kMostPoints) Thin();
}

void Curve::GoBack(double step) {
  // The samples of the unfinished point belong to steps that are lost.
  if (pending_ > 0 && last_.step > step) pending_ = 0;
  while (!points_.empty() && points_.back().step > step) points_.pop_back();
}

void Curve::Thin() {
  const size_t pairs = points_.size() / 2;
  for (size_t i = 0; i < pairs; ++i) {
    const double first = points_[2 * i].value;
    points_[i] = points_[2 * i + 1];
    points_[i].value = (first + points_[i].value) / 2;
  }
  // A point without a partner stays one of fewer samples.
  if (points_.size() % 2 == 1) points_[pairs] = points_.back();
  points_.resize((points_.size() + 1) / 2);
  stride_ *= 2;
}

std::vector<CurvePoint> Curve::Points() const {
  std::vector<CurvePoint> points = points_;
  if (pending_ > 0) {
    points.push_back(last_);
    points.back().value = sum_ / static_cast<double>(pending_);
  }
  return points;
}

}  // namespace lockstep::chief
