#include "tests/golden/gradient_json.h"

namespace lockstep::golden {

SparseRecord ReadSparse(DType dtype, const Json& json) {
  SparseRecord record;
  record.dtype = dtype;
  const Json& indices = json.at("indices");
  if (indices.is_object()) {
    record.indices_rank = indices.at("shape").size();
    record.indices = ReadInts(indices.at("data"));
  } else {
    record.indices = ReadInts(indices);
  }
  record.values = ReadTensor(dtype, json.at("values"));
  const auto shape = json.find("dense_shape");
  if (shape != json.end() && !shape->is_null()) {
    record.dense_shape = ReadInts(*shape);
  }
  return record;
}

server::SparseGradientView Show(const SparseRecord& record) {
  server::SparseGradientView view{record.dtype,         record.indices,
                                  record.indices_rank,  record.values.shape,
                                  record.values.values, std::nullopt};
  if (record.dense_shape.has_value()) {
    view.dense_shape = absl::MakeConstSpan(*record.dense_shape);
  }
  return view;
}

}  // namespace lockstep::golden
