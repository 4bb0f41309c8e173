#ifndef LOCKSTEP_STRATEGY_INPUT_ELEMENT_H_
#define LOCKSTEP_STRATEGY_INPUT_ELEMENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/collective/value.h"

namespace lockstep::strategy {

// One element of a data set: the tensors of an example, or of a batch of
// examples, which then all have the examples along their first axis.
using Element = std::vector<Value>;

// ElementStream yields the elements of a data set once.
//
// Threads: not thread-safe.
class ElementStream {
 public:
  virtual ~ElementStream() = default;

  // The next element; absent at the end, and ever after.
  virtual absl::StatusOr<std::optional<Element>> Next() = 0;
};
using StreamOr = absl::StatusOr<std::unique_ptr<ElementStream>>;

// Examples in a batch.
//
//   kInvalidArgument  a scalar, or tensors with different numbers of examples
absl::StatusOr<int64_t> CountExamples(const Element& batch);

// Examples [first, first + count) of a batch that has them.
absl::StatusOr<Element> ExamplesOf(const Element& batch, int64_t first,
                                   int64_t count);

// A batch like this one, without examples.
absl::StatusOr<Element> EmptyLike(const Element& batch);

// The examples of all batches, one after the other; at least one batch.
absl::StatusOr<Element> JoinBatches(absl::Span<const Element> batches);

// Makes a batch of examples, at least one.
absl::StatusOr<Element> StackExamples(absl::Span<const Element> examples);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_INPUT_ELEMENT_H_
