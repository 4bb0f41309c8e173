#include "tests/golden/strategy/strategy_models.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/golden/trace.h"

namespace lockstep::golden {
namespace {

using strategy::LossAndGradients;

void Require(bool fits) {
  if (!fits) throw BadTrace("features, targets or variables do not fit");
}

template <typename T>
Value DenseValue(ElementType type, std::vector<int64_t> shape,
                 const std::vector<T>& elements) {
  return Value::Of(type, std::move(shape), elements);
}

template <typename T>
LossAndGradients Linear(const std::vector<Value>& values, const Value& features,
                        const Value& targets, T global_batch) {
  Require(values.size() == 2 && features.shape().size() == 2);
  const std::vector<T> w = values[0].Elements<T>();
  const T b = values[1].Elements<T>().at(0);
  const std::vector<T> x = features.Elements<T>();
  const std::vector<T> t = targets.Elements<T>();
  const size_t width = w.size();
  Require(x.size() == t.size() * width);
  std::vector<T> gw(width);
  T gb = 0;
  T loss = 0;
  for (size_t i = 0; i < t.size(); ++i) {
    T p = 0;
    for (size_t j = 0; j < width; ++j) {
      const T term = x[i * width + j] * w[j];
      p = j == 0 ? term : p + term;
    }
    p = p + b;
    const T e = (p - t[i]) / global_batch;
    for (size_t j = 0; j < width; ++j) {
      const T term = e * x[i * width + j];
      gw[j] = i == 0 ? term : gw[j] + term;
    }
    gb = i == 0 ? e : gb + e;
    const T term = e * (p - t[i]);
    loss = i == 0 ? term : loss + term;
  }
  const ElementType type = values[0].type();
  return {DenseValue<T>(type, {}, {loss * static_cast<T>(0.5)}),
          {Leaf(DenseValue(type, values[0].shape(), gw)),
           Leaf(DenseValue<T>(type, {}, {gb}))}};
}

template <typename T>
LossAndGradients Embedding(const std::vector<Value>& values,
                           const Value& features, const Value& targets,
                           T global_batch) {
  Require(values.size() == 1 && values[0].shape().size() == 2);
  const std::vector<T> table = values[0].Elements<T>();
  const std::vector<int64_t> ids = features.Elements<int64_t>();
  const std::vector<T> t = targets.Elements<T>();
  const auto width = static_cast<size_t>(values[0].shape()[1]);
  Require(features.type() == ElementType::kInt64 &&
          t.size() == ids.size() * width);
  std::vector<T> rows(t.size());
  T loss = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    Require(ids[i] >= 0 && ids[i] < values[0].shape()[0]);
    for (size_t j = 0; j < width; ++j) {
      const size_t at = i * width + j;
      rows[at] = (table[static_cast<size_t>(ids[i]) * width + j] - t[at]) /
                 global_batch;
    }
    loss = loss + rows[i * width];
  }
  const ElementType type = values[0].type();
  Slices slices{ids, DenseValue(type, targets.shape(), rows),
                values[0].shape()};
  return {DenseValue<T>(type, {}, {loss}), {Leaf(std::move(slices))}};
}

template <typename T>
LossAndGradients Softmax(const std::vector<Value>& values,
                         const Value& features, const Value& targets,
                         double global_batch) {
  Require(values.size() == 2 && values[0].shape().size() == 2 &&
          targets.type() == ElementType::kInt64);
  const std::vector<T> w = values[0].Elements<T>();
  const std::vector<T> b = values[1].Elements<T>();
  const std::vector<T> x = features.Elements<T>();
  const std::vector<int64_t> t = targets.Elements<int64_t>();
  const auto width = static_cast<size_t>(values[0].shape()[0]);
  const size_t classes = b.size();
  Require(x.size() == t.size() * width && w.size() == width * classes);
  std::vector<double> gw(w.size());
  std::vector<double> gb(classes);
  double loss = 0;
  for (size_t i = 0; i < t.size(); ++i) {
    Require(t[i] >= 0 && t[i] < static_cast<int64_t>(classes));
    std::vector<double> logits(b.begin(), b.end());
    for (size_t j = 0; j < width; ++j) {
      for (size_t c = 0; c < classes; ++c) {
        logits[c] += double{x[i * width + j]} * w[j * classes + c];
      }
    }
    const double most = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit - most);
    const auto target = static_cast<size_t>(t[i]);
    loss += (std::log(sum) - (logits[target] - most)) / global_batch;
    for (size_t c = 0; c < classes; ++c) {
      const double p = std::exp(logits[c] - most) / sum;
      const double e = (p - (c == target ? 1 : 0)) / global_batch;
      gb[c] += e;
      for (size_t j = 0; j < width; ++j) {
        gw[j * classes + c] += e * x[i * width + j];
      }
    }
  }
  const ElementType type = values[0].type();
  return {DenseValue<T>(type, {}, {static_cast<T>(loss)}),
          {Leaf(DenseValue(type, values[0].shape(),
                           std::vector<T>(gw.begin(), gw.end()))),
           Leaf(DenseValue(type, values[1].shape(),
                           std::vector<T>(gb.begin(), gb.end())))}};
}

template <typename T>
LossAndGradients Compute(const std::string& model,
                         const std::vector<Value>& values,
                         const Value& features, const Value& targets,
                         int64_t global_batch) {
  const T batch = static_cast<T>(global_batch);
  if (model == "linear") return Linear<T>(values, features, targets, batch);
  if (model == "embedding") {
    return Embedding<T>(values, features, targets, batch);
  }
  if (model == "softmax") return Softmax<T>(values, features, targets, batch);
  throw BadTrace(absl::StrCat("unknown model \"", model, "\""));
}

}  // namespace

LossAndGradients ComputeModel(const std::string& model,
                              const std::vector<Value>& values,
                              const Value& features, const Value& targets,
                              int64_t global_batch) {
  const ElementType type = values.at(0).type();
  if (type == ElementType::kFloat32) {
    return Compute<float>(model, values, features, targets, global_batch);
  }
  Require(type == ElementType::kFloat64);
  return Compute<double>(model, values, features, targets, global_batch);
}

}  // namespace lockstep::golden
