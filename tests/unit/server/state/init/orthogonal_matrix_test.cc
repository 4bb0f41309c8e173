#include "server/state/init/orthogonal_matrix.h"

#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

// Entry (i, j) of the products of all columns, or of all rows.
double Product(const std::vector<double>& matrix, int64_t rows, int64_t cols,
               int64_t i, int64_t j) {
  double sum = 0;
  if (rows >= cols) {
    for (int64_t r = 0; r < rows; ++r) {
      sum += matrix[r * cols + i] * matrix[r * cols + j];
    }
  } else {
    for (int64_t c = 0; c < cols; ++c) {
      sum += matrix[i * cols + c] * matrix[j * cols + c];
    }
  }
  return sum;
}

void ExpectOrthonormal(int64_t rows, int64_t cols) {
  const auto matrix = OrthogonalMatrix(CounterRandom(7, "w"), rows, cols);
  ASSERT_EQ(matrix.size(), static_cast<size_t>(rows * cols));
  const int64_t count = std::min(rows, cols);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < count; ++j) {
      EXPECT_NEAR(Product(matrix, rows, cols, i, j), i == j ? 1 : 0, 1e-12);
    }
  }
}

TEST(OrthogonalMatrixTest, TheFewerOfRowsAndColumnsAreOrthonormal) {
  ExpectOrthonormal(1, 1);
  ExpectOrthonormal(20, 20);
  ExpectOrthonormal(30, 7);
  ExpectOrthonormal(7, 30);
}

}  // namespace
}  // namespace lockstep::server
