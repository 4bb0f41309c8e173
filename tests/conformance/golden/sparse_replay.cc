#include <optional>

#include "tests/conformance/golden/accumulator_replay.h"
#include "tests/conformance/golden/replay.h"

namespace lockstep::golden {
namespace {

using Shape = std::vector<int64_t>;

struct SparseFormat {
  struct Gradient {
    DType dtype;
    Shape indices;
    size_t indices_rank = 1;
    Tensor values;
    std::optional<Shape> dense_shape;
  };

  static Gradient Read(DType dtype, const Json& json) {
    Gradient gradient;
    gradient.dtype = dtype;
    const Json& indices = json.at("indices");
    if (indices.is_object()) {
      gradient.indices_rank = indices.at("shape").size();
      gradient.indices = indices.at("data").get<Shape>();
    } else {
      gradient.indices = indices.get<Shape>();
    }
    gradient.values = ReadTensor(dtype, json.at("values"));
    const Json& dense_shape = json.at("dense_shape");
    if (!dense_shape.is_null()) gradient.dense_shape = dense_shape.get<Shape>();
    return gradient;
  }

  static SparseGradientView Show(const Gradient& gradient) {
    SparseGradientView view{gradient.dtype,         gradient.indices,
                            gradient.indices_rank,  gradient.values.shape,
                            gradient.values.values, std::nullopt};
    if (gradient.dense_shape.has_value()) {
      view.dense_shape = absl::MakeConstSpan(*gradient.dense_shape);
    }
    return view;
  }

  static void Compare(DType dtype, const Json& recorded,
                      const SparseGradient& actual) {
    const Gradient expected = Read(dtype, recorded);
    EXPECT_EQ(actual.dtype, dtype);
    EXPECT_EQ(actual.indices, expected.indices);
    EXPECT_EQ(actual.values_shape, expected.values.shape);
    EXPECT_EQ(Difference(dtype, expected.values.values, actual.values), "");
    EXPECT_EQ(actual.dense_shape, expected.dense_shape);
  }
};

}  // namespace

void ReplaySparseAccumulator(const Json& scenario, SparseInput input) {
  const SparseSum::Options options{ReadDType(scenario), ReadShape(scenario),
                                   ReadReduction(scenario), input};
  AccumulatorReplay<SparseAccumulator, SparseFormat>(options).Run(
      scenario.at("ops"));
}

}  // namespace lockstep::golden
