#include "server/step/compatible/gradient_accumulator.h"
#include "tests/golden/accumulator_replay.h"
#include "tests/golden/replay.h"

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

  static server::DenseGradientView Show(const Gradient& gradient) {
    return {gradient.dtype, gradient.tensor.shape, gradient.tensor.values};
  }

  static void Compare(DType dtype, const Json& recorded,
                      const server::DenseGradient& actual, Report& report) {
    const Tensor expected = ReadTensor(dtype, recorded);
    report.Expect("result's shape", expected.shape, actual.shape);
    report.ExpectSame("result", dtype, expected.values, actual.values,
                      Zeros::kDiffer);
  }
};

}  // namespace

void ReplayDenseAccumulator(const Json& scenario, Report& report) {
  const server::DenseSum::Options options{
      ReadDType(scenario), ReadShape(scenario), ReadReduction(scenario)};
  AccumulatorReplay<server::GradientAccumulator, DenseFormat>(options, report)
      .Run(scenario.at("ops"));
}

}  // namespace lockstep::golden
