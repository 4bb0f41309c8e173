#include "server/sync/gradient_accumulator.h"
#include "tests/conformance/golden/accumulator_replay.h"
#include "tests/conformance/golden/replay.h"

namespace lockstep::golden {
namespace {

struct DenseFormat {
  struct Gradient {
    DType dtype;
    Tensor tensor;
  };

  static Gradient Read(DType dtype, const Json& json) {
    return {dtype, ReadTensor(dtype, json)};
  }

  static DenseGradientView Show(const Gradient& gradient) {
    return {gradient.dtype, gradient.tensor.shape, gradient.tensor.values};
  }

  static void Compare(DType dtype, const Json& recorded,
                      const DenseGradient& actual) {
    const Tensor expected = ReadTensor(dtype, recorded);
    EXPECT_EQ(actual.dtype, dtype);
    EXPECT_EQ(actual.shape, expected.shape);
    EXPECT_EQ(Difference(dtype, expected.values, actual.values), "");
  }
};

}  // namespace

void ReplayDenseAccumulator(const Json& scenario) {
  const DenseSum::Options options{ReadDType(scenario), ReadShape(scenario),
                                  ReadReduction(scenario)};
  AccumulatorReplay<GradientAccumulator, DenseFormat>(options).Run(
      scenario.at("ops"));
}

}  // namespace lockstep::golden
