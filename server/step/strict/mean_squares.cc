#include "server/step/strict/mean_squares.h"

namespace lockstep::server {

void MeanSquares::Reset() {
  parts_.assign(parts_.size(), std::nullopt);
  measured_ = 0;
  decided_ = false;
}

void MeanSquares::Measured(int part, double squares) {
  if (!parts_[part].has_value()) ++measured_;
  parts_[part] = squares;
}

double MeanSquares::Sum() const {
  double sum = 0;
  for (const std::optional<double>& part : parts_) sum += part.value_or(0);
  return sum;
}

}  // namespace lockstep::server
