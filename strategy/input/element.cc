#include "strategy/input/element.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/gather.h"

namespace lockstep::strategy {
namespace {

// Gather() would name ranks in place of examples, and shapes with the new axis.
absl::Status CheckAlike(absl::Span<const Element> examples) {
  const Element& first = examples[0];
  for (size_t i = 1; i < examples.size(); ++i) {
    // Other numbers of tensors are an error of JoinBatches().
    const size_t tensors = std::min(examples[i].size(), first.size());
    for (size_t t = 0; t < tensors; ++t) {
      const Value& tensor = examples[i][t];
      if (tensor.type() == first[t].type() &&
          tensor.shape() == first[t].shape()) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", t, " of element ", i, " of a batch is ",
          tensor.Description(), ", that of element 0 ", first[t].Description(),
          "; elements can be batched only if their types and shapes are equal: "
          "pad them in a Map() before Batch()"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> CountExamples(const Element& batch) {
  std::optional<int64_t> count;
  for (const Value& tensor : batch) {
    LOCKSTEP_RETURN_IF_ERROR(tensor.Check());
    if (tensor.shape().empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "an element is ", tensor.Description(),
          ", which cannot be divided among replicas; batch the data set"));
    }
    if (count.has_value() && *count != tensor.shape()[0]) {
      return absl::InvalidArgumentError(
          absl::StrCat("the tensors of a batch have ", *count, " and ",
                       tensor.shape()[0], " examples"));
    }
    count = tensor.shape()[0];
  }
  return count.value_or(0);
}

absl::StatusOr<Element> ExamplesOf(const Element& batch, int64_t first,
                                   int64_t count) {
  Element part;
  for (const Value& tensor : batch) {
    std::vector<int64_t> shape = tensor.shape();
    // A batch of no examples must not divide by 0; its rows have 0 bytes.
    const int64_t all = std::max<int64_t>(shape[0], 1);
    shape[0] = count;
    LOCKSTEP_ASSIGN_OR_RETURN(Value cut,
                              Value::Zeros(tensor.type(), std::move(shape)));
    const size_t row = tensor.bytes().size() / static_cast<size_t>(all);
    // Empty values may have a null pointer, which memcpy() must not get.
    if (!cut.bytes().empty()) {
      std::memcpy(cut.mutable_bytes().data(),
                  tensor.bytes().data() + static_cast<size_t>(first) * row,
                  cut.bytes().size());
    }
    part.push_back(std::move(cut));
  }
  return part;
}

absl::StatusOr<Element> EmptyLike(const Element& batch) {
  LOCKSTEP_RETURN_IF_ERROR(CountExamples(batch).status());
  return ExamplesOf(batch, 0, 0);
}

absl::StatusOr<Element> BatchLike(const Element& example, int64_t examples) {
  Element batch;
  for (const Value& tensor : example) {
    std::vector<int64_t> shape = tensor.shape();
    shape.insert(shape.begin(), examples);
    LOCKSTEP_ASSIGN_OR_RETURN(batch.emplace_back(),
                              Value::Zeros(tensor.type(), std::move(shape)));
  }
  return batch;
}

absl::StatusOr<Element> NoExamples(const Element& like) {
  Element none;
  for (const Value& tensor : like) {
    std::vector<int64_t> shape = tensor.shape();
    const bool known = std::find(shape.begin(), shape.end(), 0) == shape.end();
    if (known && !shape.empty()) shape[0] = 0;
    LOCKSTEP_ASSIGN_OR_RETURN(none.emplace_back(),
                              Value::Zeros(tensor.type(), std::move(shape)));
  }
  return none;
}

absl::StatusOr<Element> JoinBatches(absl::Span<const Element> batches) {
  Element joined;
  for (size_t t = 0; t < batches[0].size(); ++t) {
    std::vector<Value> parts;
    for (const Element& batch : batches) {
      if (batch.size() != batches[0].size()) {
        return absl::InvalidArgumentError(
            "elements of a data set must have the same number of tensors");
      }
      parts.push_back(batch[t]);
    }
    LOCKSTEP_ASSIGN_OR_RETURN(joined.emplace_back(), Gather(parts, 0));
  }
  return joined;
}

absl::StatusOr<Element> StackExamples(absl::Span<const Element> examples) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAlike(examples));
  std::vector<Element> batches;
  for (const Element& example : examples) {
    Element& batch = batches.emplace_back();
    for (const Value& tensor : example) {
      std::vector<int64_t> shape = tensor.shape();
      // An example is a batch of one along a new first axis.
      shape.insert(shape.begin(), 1);
      batch.push_back(tensor.Reshaped(std::move(shape)));
    }
  }
  return JoinBatches(batches);
}

}  // namespace lockstep::strategy
