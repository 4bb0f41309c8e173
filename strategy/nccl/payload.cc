#include "strategy/nccl/payload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::strategy {
namespace {

bool IsPayload(const Leaf& leaf, size_t small_bytes) {
  const Value* value = std::get_if<Value>(&leaf);
  // Empty values have nothing to move, also where small_bytes is 0.
  return value != nullptr && !value->bytes().empty() &&
         value->bytes().size() >= small_bytes;
}

Value Integers(const std::vector<int64_t>& integers) {
  return Value::Of(ElementType::kInt64, {static_cast<int64_t>(integers.size())},
                   integers);
}

absl::StatusOr<std::vector<int64_t>> ToIntegers(const Leaf& leaf) {
  const Value* value = std::get_if<Value>(&leaf);
  if (value == nullptr || value->type() != ElementType::kInt64) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a parcel has ", DescriptionOf(leaf),
        " in the place of a header; all members must run the same build"));
  }
  return value->Elements<int64_t>();
}

// A header is the number of the type, then the shape.
absl::StatusOr<Value> EmptyLeaf(const Leaf& header) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<int64_t> shape, ToIntegers(header));
  if (shape.empty() || !IsElementType(shape[0])) {
    return absl::InvalidArgumentError(
        "a header of a leaf has no element type; all members must run the same "
        "build");
  }
  const auto type = static_cast<ElementType>(shape[0]);
  shape.erase(shape.begin());
  return Value::Zeros(type, std::move(shape));
}

}  // namespace

// The first leaf of the rest has the places of the headers.
std::vector<Leaf> WithoutPayload(const std::vector<Leaf>& leaves,
                                 size_t small_bytes) {
  std::vector<Leaf> rest(1);
  std::vector<int64_t> places;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!IsPayload(leaves[i], small_bytes)) {
      rest.push_back(leaves[i]);
      continue;
    }
    const auto& value = std::get<Value>(leaves[i]);
    std::vector<int64_t> header = {static_cast<int64_t>(value.type())};
    header.insert(header.end(), value.shape().begin(), value.shape().end());
    rest.emplace_back(Integers(header));
    places.push_back(static_cast<int64_t>(i));
  }
  rest[0] = Integers(places);
  return rest;
}

size_t Incoming::bytes() const {
  size_t bytes = 0;
  for (const size_t i : payload) {
    bytes += std::get<Value>(leaves[i]).bytes().size();
  }
  return bytes;
}

std::vector<absl::Span<std::byte>> Incoming::memory() {
  std::vector<absl::Span<std::byte>> memory;
  for (const size_t i : payload) {
    memory.push_back(std::get<Value>(leaves[i]).mutable_bytes());
  }
  return memory;
}

absl::StatusOr<Incoming> ReadRest(const std::vector<Leaf>& rest) {
  if (rest.empty()) {
    return absl::InvalidArgumentError(
        "a parcel has no header; all members must run the same build");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> places,
                            ToIntegers(rest[0]));
  Incoming incoming;
  incoming.leaves.assign(rest.begin() + 1, rest.end());
  for (const int64_t each : places) {
    // A negative place becomes a large one, and is refused below.
    const auto place = static_cast<size_t>(each);
    if (place >= incoming.leaves.size() ||
        (!incoming.payload.empty() && place <= incoming.payload.back())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a header is for leaf ", each, " of ", incoming.leaves.size(),
          ", or out of order; all members must run the same build"));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(incoming.leaves[place],
                              EmptyLeaf(incoming.leaves[place]));
    incoming.payload.push_back(place);
  }
  return incoming;
}

std::vector<absl::Span<const std::byte>> PayloadOf(
    const std::vector<Leaf>& leaves, size_t small_bytes) {
  std::vector<absl::Span<const std::byte>> memory;
  for (const Leaf& leaf : leaves) {
    if (!IsPayload(leaf, small_bytes)) continue;
    memory.push_back(std::get<Value>(leaf).bytes());
  }
  return memory;
}

}  // namespace lockstep::strategy
