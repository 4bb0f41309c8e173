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

// One element of a data set: the tensors of one example, or of a batch. Tensors
// of a batch have shape [examples, ...].
using Element = std::vector<Value>;

// ElementStream yields the elements of a data set once.
//
// Threads: not thread-safe.
// Errors:  those of reading the data, and of the functions of the data set.
class ElementStream {
 public:
  virtual ~ElementStream() = default;

  // Returns the next element; at the end, and from then on, nullopt.
  virtual absl::StatusOr<std::optional<Element>> Next() = 0;
};
using StreamOr = absl::StatusOr<std::unique_ptr<ElementStream>>;

// Returns the number of examples in a batch.
//
//   kInvalidArgument  a tensor is a scalar, or the tensors have different
//                     numbers of examples; as Value::Check()
absl::StatusOr<int64_t> CountExamples(const Element& batch);

// Returns examples [first, first + count) of a batch, which must have them.
// Errors: as Value::Zeros().
absl::StatusOr<Element> ExamplesOf(const Element& batch, int64_t first,
                                   int64_t count);

// Returns a batch of no examples, with the types and shapes of `batch`. Errors:
// as CountExamples().
absl::StatusOr<Element> EmptyLike(const Element& batch);

// Returns a batch of `examples` examples of zeros with the types and shapes of
// `example`. Errors: as Value::Zeros().
absl::StatusOr<Element> BatchLike(const Element& example, int64_t examples);

// Returns the element for a replica without data. `like` is as Dataset::Like():
// the dimensions that differ between elements are 0. The result has zeros of
// the types and shapes of `like`, except that a tensor in which no dimension is
// 0 gets 0 as its first dimension. A scalar stays a scalar.
absl::StatusOr<Element> NoExamples(const Element& like);

// Returns one batch of the examples of all batches, in order. There must be at
// least one batch.
//
//   kInvalidArgument  the batches have different numbers of tensors; or as
//                     Gather()
absl::StatusOr<Element> JoinBatches(absl::Span<const Element> batches);

// Returns a batch of `examples`, of which there must be at least one.
//
//   kInvalidArgument  the examples have different types or shapes; or as
//                     JoinBatches()
absl::StatusOr<Element> StackExamples(absl::Span<const Element> examples);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_INPUT_ELEMENT_H_
