#ifndef LOCKSTEP_TESTS_UNIT_STRATEGY_INPUT_NUMBER_STREAMS_HARNESS_H_
#define LOCKSTEP_TESTS_UNIT_STRATEGY_INPUT_NUMBER_STREAMS_HARNESS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "strategy/input/streams.h"

namespace lockstep::strategy {

// The numbers of each element of a stream of int64, up to `most` elements.
inline std::vector<std::vector<int64_t>> NumbersOf(ElementStream& stream,
                                                   size_t most = 100) {
  std::vector<std::vector<int64_t>> numbers;
  while (numbers.size() < most) {
    const auto next = stream.Next();
    if (!next.ok() || !next->has_value()) break;
    numbers.push_back((**next)[0].Elements<int64_t>());
  }
  return numbers;
}

// The scalars first, ..., first + count - 1.
inline std::unique_ptr<ElementStream> NumberStream(int64_t count,
                                                   int64_t first = 0) {
  return CountedStream(count, [first](int64_t i) -> absl::StatusOr<Element> {
    return Element{Value::Of<int64_t>(ElementType::kInt64, {}, {first + i})};
  });
}

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_TESTS_UNIT_STRATEGY_INPUT_NUMBER_STREAMS_HARNESS_H_
