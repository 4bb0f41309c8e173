#include <optional>

#include "tests/golden/accumulator_replay.h"
#include "tests/golden/gradient_json.h"
#include "tests/golden/replay.h"

namespace lockstep::golden {
namespace {

struct SparseFormat {
  using Gradient = SparseRecord;

  static Gradient Read(DType dtype, const Json& json) {
    return ReadSparse(dtype, json);
  }
  static server::SparseGradientView Show(const Gradient& gradient) {
    return golden::Show(gradient);
  }
  static void Compare(DType dtype, const Json& recorded,
                      const server::SparseGradient& actual, Report& report) {
    const SparseRecord expected = ReadSparse(dtype, recorded);
    report.Expect("result's indices", expected.indices, actual.indices);
    report.Expect("result's shape of values", expected.values.shape,
                  actual.values_shape);
    report.ExpectSame("result's values", dtype, expected.values.values,
                      actual.values, Zeros::kDiffer);
    report.Expect("result's dense_shape",
                  expected.dense_shape.value_or(std::vector<int64_t>{}),
                  actual.dense_shape);
  }
};

}  // namespace

void ReplaySparseAccumulator(const Json& scenario, server::SparseInput input,
                             Report& report) {
  const server::SparseSum::Options options{
      ReadDType(scenario), ReadShape(scenario), ReadReduction(scenario), input};
  AccumulatorReplay<server::SparseAccumulator, SparseFormat>(options, report)
      .Run(scenario.at("ops"));
}

}  // namespace lockstep::golden
