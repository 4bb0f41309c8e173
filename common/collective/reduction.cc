#include "common/collective/reduction.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/arithmetic.h"
#include "common/collective/gather.h"

namespace lockstep {
namespace {

absl::Status CheckAlike(absl::Span<const Value> values) {
  if (values.empty()) {
    return absl::InvalidArgumentError("there is no value to reduce");
  }
  for (const Value& value : values) LOCKSTEP_RETURN_IF_ERROR(value.Check());
  for (size_t r = 1; r < values.size(); ++r) {
    if (values[r].type() == values[0].type() &&
        values[r].shape() == values[0].shape()) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "rank 0 has ", values[0].Description(), ", rank ", r, " has ",
        values[r].Description(), "; all ranks must reduce the same"));
  }
  return absl::OkStatus();
}

// As SumInOrder(), but rounds bfloat16 after each addition, as TensorFlow does
// when it adds two tensors.
void AddInOrder(ElementType type, size_t count,
                absl::Span<const std::byte* const> terms, std::byte* sum) {
  if (type != ElementType::kBFloat16) {
    return SumInOrder(type, count, terms, 1, sum);
  }
  if (sum != terms[0]) std::memcpy(sum, terms[0], count * SizeOf(type));
  for (const std::byte* term : terms.subspan(1)) {
    Combine(type, Arithmetic::kAdd, count, sum, term);
  }
}

// Adds elements [first, first + count) of all ranks, beginning with rank
// `begin`.
void AddFrom(size_t begin, size_t first, size_t count,
             absl::Span<const Value> values, Value& sum) {
  const size_t item = SizeOf(sum.type());
  std::vector<const std::byte*> terms;
  for (size_t i = 0; i < values.size(); ++i) {
    const Value& value = values[(begin + i) % values.size()];
    terms.push_back(value.bytes().data() + first * item);
  }
  AddInOrder(sum.type(), count, terms,
             sum.mutable_bytes().data() + first * item);
}

Value Sum(SumOrder order, absl::Span<const Value> values) {
  Value sum = values[0];
  const size_t size = sum.size();
  if (order == SumOrder::kRank) {
    AddFrom(0, 0, size, values, sum);
    return sum;
  }
  const size_t ranks = values.size();
  const size_t chunk = RingChunk(size, ranks, SizeOf(sum.type()));
  // In a ring, chunk c is summed beginning with rank c; the order decides the
  // last bits of the sum.
  for (size_t c = 0; c < ranks && c * chunk < size; ++c) {
    AddFrom(c, c * chunk, std::min(chunk, size - c * chunk), values, sum);
  }
  return sum;
}

// The quotients of a value of integers, each rounded once to a Quotient.
template <typename Quotient>
Value Quotients(const Value& value, double count, ElementType type) {
  return VisitInteger(value.type(), [&](auto zero) {
    std::vector<Quotient> quotients;
    for (const auto element : value.Elements<decltype(zero)>()) {
      // Float64 is wide enough that rounding it to float32 gives the float32
      // quotient.
      quotients.push_back(
          static_cast<Quotient>(static_cast<double>(element) / count));
    }
    return Value::Of<Quotient>(type, value.shape(), quotients);
  });
}

// Returns one pack of a rank: its values joined.
Value Join(const std::vector<Value>& values, absl::Span<const size_t> members) {
  std::vector<std::byte> bytes;
  for (const size_t i : members) {
    const absl::Span<const std::byte> part = values[i].bytes();
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  const ElementType type = values[members[0]].type();
  const auto size = static_cast<int64_t>(bytes.size() / SizeOf(type));
  return Value::Of<std::byte>(type, {size}, bytes);
}

// Cuts the reduced pack into the values of its members.
void Cut(const Value& pack, const std::vector<Value>& like,
         absl::Span<const size_t> members, std::vector<Value>& results) {
  const std::byte* place = pack.bytes().data();
  for (const size_t i : members) {
    const size_t bytes = like[i].size() * SizeOf(pack.type());
    results[i] = Value::Of<std::byte>(pack.type(), like[i].shape(),
                                      {place, place + bytes});
    place += bytes;
  }
}

// Returns the indices of the values in each pack, in their order.
std::vector<std::vector<size_t>> PacksOf(const std::vector<Value>& values,
                                         int64_t bytes_per_pack) {
  std::vector<std::vector<size_t>> packs;
  int64_t bytes = 0;
  // From the last value to the first, as TensorFlow packs: gradients of the
  // last layers are ready first.
  for (size_t i = values.size(); i-- > 0;) {
    // A pack is full once it is above the limit, so one value may exceed it.
    if (packs.empty() || (bytes_per_pack > 0 && bytes > bytes_per_pack)) {
      packs.emplace_back();
      bytes = 0;
    }
    packs.back().push_back(i);
    bytes += static_cast<int64_t>(values[i].bytes().size());
  }
  return packs;
}

absl::Status CheckPacks(absl::Span<const std::vector<Value>> by_rank,
                        const std::vector<std::vector<size_t>>& packs) {
  for (size_t i = 0; i < by_rank[0].size(); ++i) {
    std::vector<Value> values;
    for (const std::vector<Value>& rank : by_rank) values.push_back(rank[i]);
    LOCKSTEP_RETURN_IF_ERROR(CheckAlike(values));
  }
  for (const std::vector<size_t>& pack : packs) {
    for (const size_t i : pack) {
      const Value& first = by_rank[0][pack[0]];
      const Value& value = by_rank[0][i];
      if (value.type() == first.type()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "a pack has ", first.Description(), " and ", value.Description(),
          "; reduce values of different types in calls of their own, or set a "
          "bytes_per_pack that separates them"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Value Mean(const Value& sum, double count) {
  if (IsInteger(sum.type())) {
    // As TensorFlow's truediv().
    return SizeOf(sum.type()) <= sizeof(int16_t)
               ? Quotients<float>(sum, count, ElementType::kFloat32)
               : Quotients<double>(sum, count, ElementType::kFloat64);
  }
  Value mean = sum;
  DivideAll(mean.type(), mean.size(), mean.mutable_bytes().data(), count);
  return mean;
}

absl::StatusOr<ReduceOp> ParseReduceOp(std::string_view name) {
  if (absl::EqualsIgnoreCase(std::string(name), "SUM")) return ReduceOp::kSum;
  if (absl::EqualsIgnoreCase(std::string(name), "MEAN")) return ReduceOp::kMean;
  return absl::InvalidArgumentError(absl::StrCat(
      "a reduction is \"", std::string(name), "\"; it must be SUM or MEAN"));
}

absl::StatusOr<Value> SumAlong(const Value& value, int64_t axis) {
  LOCKSTEP_RETURN_IF_ERROR(value.Check());
  LOCKSTEP_RETURN_IF_ERROR(CheckIsNumber(value.type()));
  const auto rank = static_cast<int64_t>(value.shape().size());
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "axis is ", axis, ", but ", value.Description(), " has ", rank));
  }
  const auto place = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  std::vector<int64_t> shape = value.shape();
  const auto terms = static_cast<size_t>(shape[place]);
  size_t blocks = 1;  // before the axis
  for (size_t i = 0; i < place; ++i) blocks *= static_cast<size_t>(shape[i]);
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(place));
  LOCKSTEP_ASSIGN_OR_RETURN(Value sum, Value::Zeros(value.type(), shape));
  if (terms == 0 || sum.size() == 0) return sum;
  const size_t row = sum.size() / blocks;
  const size_t bytes = row * SizeOf(sum.type());
  for (size_t block = 0; block < blocks; ++block) {
    std::vector<const std::byte*> rows;
    for (size_t t = 0; t < terms; ++t) {
      rows.push_back(value.bytes().data() + (block * terms + t) * bytes);
    }
    SumInOrder(sum.type(), row, rows, 1,
               sum.mutable_bytes().data() + block * bytes);
  }
  return sum;
}

absl::StatusOr<Value> Reduce(ReduceOp op, SumOrder order,
                             absl::Span<const Value> values) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAlike(values));
  // Without a division, so that a single integer keeps its type.
  if (values.size() == 1) return values[0];
  LOCKSTEP_RETURN_IF_ERROR(CheckIsNumber(values[0].type()));
  Value sum = Sum(order, values);
  if (op == ReduceOp::kSum) return sum;
  return Mean(sum, static_cast<double>(values.size()));
}

absl::StatusOr<std::vector<Value>> ReducePacked(
    ReduceOp op, SumOrder order, absl::Span<const std::vector<Value>> by_rank,
    int64_t bytes_per_pack) {
  if (by_rank.empty()) {
    return absl::InvalidArgumentError(
        "there is no rank whose values to reduce");
  }
  for (const std::vector<Value>& rank : by_rank) {
    if (rank.size() == by_rank[0].size()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("one rank has ", by_rank[0].size(), " values, another ",
                     rank.size(), "; all ranks must reduce the same"));
  }
  const auto packs = PacksOf(by_rank[0], bytes_per_pack);
  LOCKSTEP_RETURN_IF_ERROR(CheckPacks(by_rank, packs));
  std::vector<Value> results(by_rank[0].size());
  for (const std::vector<size_t>& members : packs) {
    std::vector<Value> joined;
    for (const std::vector<Value>& rank : by_rank) {
      joined.push_back(Join(rank, members));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const Value pack, Reduce(op, order, joined));
    Cut(pack, by_rank[0], members, results);
  }
  return results;
}

absl::StatusOr<Slices> ReduceSlices(ReduceOp op,
                                    absl::Span<const Slices> slices) {
  if (slices.empty()) {
    return absl::InvalidArgumentError("there are no slices to reduce");
  }
  // Else the rows of one would be joined to the indices of another.
  for (const Slices& each : slices) LOCKSTEP_RETURN_IF_ERROR(CheckSlices(each));
  // As in Reduce().
  if (slices.size() == 1) return slices[0];
  Slices joined;
  joined.dense_shape = slices[0].dense_shape;
  std::vector<Value> rows;
  for (const Slices& each : slices) {
    joined.indices.insert(joined.indices.end(), each.indices.begin(),
                          each.indices.end());
    rows.push_back(each.values);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(joined.values, Gather(rows, 0));
  if (op == ReduceOp::kMean) {
    LOCKSTEP_RETURN_IF_ERROR(CheckIsNumber(joined.values.type()));
    joined.values = Mean(joined.values, static_cast<double>(slices.size()));
  }
  return joined;
}

}  // namespace lockstep
