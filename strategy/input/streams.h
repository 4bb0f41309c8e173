#ifndef LOCKSTEP_STRATEGY_INPUT_STREAMS_H_
#define LOCKSTEP_STRATEGY_INPUT_STREAMS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategy/input/element.h"

// The steps of data sets, as streams over the step before.
namespace lockstep::strategy {

using Opener = std::function<StreamOr()>;
using FileOpener = std::function<StreamOr(const std::string& file)>;
// Returns the element that takes the place of `element`; nullopt leaves it out.
using Change =
    std::function<absl::StatusOr<std::optional<Element>>(Element element)>;

// make(0), make(1), ..., make(count - 1).
std::unique_ptr<ElementStream> CountedStream(
    int64_t count, std::function<absl::StatusOr<Element>(int64_t i)> make);

// The elements of files, of which `cycle` are open at a time: one element from
// each in turn. A file that has ended loses its turn, and the next file opens
// in its place one round later.
std::unique_ptr<ElementStream> FileStream(std::vector<std::string> files,
                                          FileOpener open, int cycle);

// Batches of `size` examples; the last may be smaller, or is dropped.
std::unique_ptr<ElementStream> BatchStream(std::unique_ptr<ElementStream> input,
                                           int64_t size, bool drop_remainder);

// The elements of open() `times` times; for ever if absent, unless a stream has
// no element at all.
std::unique_ptr<ElementStream> RepeatStream(Opener open,
                                            std::optional<int64_t> times);

// The results of `change` for each element of `input`.
std::unique_ptr<ElementStream> ChangeStream(
    std::unique_ptr<ElementStream> input, Change change);

// Elements first, first + every, ..., below `end` if given.
std::unique_ptr<ElementStream> SelectStream(
    std::unique_ptr<ElementStream> input, int64_t first, int64_t every,
    std::optional<int64_t> end);

// Reads up to `buffer` elements ahead, in a thread that ends with the stream;
// reads none ahead if the system has no more threads.
std::unique_ptr<ElementStream> PrefetchStream(
    std::unique_ptr<ElementStream> input, size_t buffer);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_INPUT_STREAMS_H_
