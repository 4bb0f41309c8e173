#include "server/state/init/orthogonal_matrix.h"

#include <algorithm>
#include <cmath>

namespace lockstep::server {
namespace {

using Vector = std::vector<double>;

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Subtracts from `v` its component in the direction of the unit vector `unit`.
void Project(const Vector& unit, Vector& v) {
  const double part = Dot(unit, v);
  for (size_t i = 0; i < v.size(); ++i) v[i] -= part * unit[i];
}

void Normalize(Vector& v) {
  const double length = std::sqrt(Dot(v, v));
  for (double& element : v) element /= length;
}

}  // namespace

std::vector<double> OrthogonalMatrix(const CounterRandom& random, int64_t rows,
                                     int64_t cols) {
  // At most `length` vectors of that length can be orthogonal, so the longer
  // side is the length.
  const int64_t length = std::max(rows, cols);
  const int64_t count = std::min(rows, cols);
  std::vector<Vector> units;
  for (int64_t u = 0; u < count; ++u) {
    Vector v(length);
    for (int64_t i = 0; i < length; ++i) v[i] = random.Normal(u * length + i);
    // Twice: rounding leaves a rest of the other vectors after the first round.
    for (int round = 0; round < 2; ++round) {
      for (const Vector& unit : units) Project(unit, v);
    }
    Normalize(v);
    units.push_back(std::move(v));
  }
  std::vector<double> matrix(rows * cols);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      matrix[row * cols + col] =
          rows >= cols ? units[col][row] : units[row][col];
    }
  }
  return matrix;
}

}  // namespace lockstep::server
