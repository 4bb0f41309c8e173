#include "strategy/values/sliced_reduction.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::strategy {
namespace {

// Below this, the second call costs more time than the bytes that it spares.
constexpr size_t kLeastBytes = size_t{64} << 10;

// The elements that a worker of `workers` adds up: [Begin(w), Begin(w + 1)).
size_t Begin(size_t worker, size_t workers, size_t elements) {
  return elements * worker / workers;
}

absl::StatusOr<Value> SliceOf(const Value& value, size_t worker,
                              size_t workers) {
  const size_t begin = Begin(worker, workers, value.size());
  const size_t end = Begin(worker + 1, workers, value.size());
  const size_t item = SizeOf(value.type());
  const auto bytes = value.bytes().subspan(begin * item, (end - begin) * item);
  return Value::FromBytes(value.type(), {static_cast<int64_t>(end - begin)},
                          {bytes.begin(), bytes.end()});
}

// OK if each worker has given `count` leaves, all dense. A worker gives any
// parcel under any description.
absl::Status CheckParcels(const std::string& description,
                          absl::Span<const Parcel> parcels, size_t count) {
  for (size_t w = 0; w < parcels.size(); ++w) {
    if (parcels[w]->size() != count) {
      return absl::InvalidArgumentError(
          absl::StrCat(description, ": worker ", w, " has given ",
                       parcels[w]->size(), " slices, but must give ", count,
                       "; all workers must run the same build"));
    }
    for (const Leaf& leaf : *parcels[w]) {
      if (std::holds_alternative<Value>(leaf)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          description, ": worker ", w, " has given ", DescriptionOf(leaf),
          ", but must give dense values; all workers must run the same build"));
    }
  }
  return absl::OkStatus();
}

// Joins the slices of a value of this shape.
absl::StatusOr<Value> Join(absl::Span<const Value* const> slices,
                           const std::vector<int64_t>& shape) {
  std::vector<std::byte> bytes;
  for (const Value* slice : slices) {
    if (slice->type() != slices[0]->type()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "one slice of a value is ", slices[0]->Description(), ", another ",
          slice->Description(), "; all workers must run the same build"));
    }
    bytes.insert(bytes.end(), slice->bytes().begin(), slice->bytes().end());
  }
  return Value::FromBytes(slices[0]->type(), shape, std::move(bytes));
}

}  // namespace

bool PaysToSlice(const Collective& group, size_t bytes) {
  // Two workers send the same bytes either way.
  return group.scatters_apart() && group.members() > 2 && bytes >= kLeastBytes;
}

absl::StatusOr<std::vector<Value>> ReduceInSlices(
    Collective& group, ReduceOp op, const std::string& description,
    absl::Span<const std::vector<Value>> by_rank) {
  const auto workers = static_cast<size_t>(group.members());
  const size_t values = by_rank[0].size();
  std::vector<std::vector<Leaf>> for_worker(workers);
  for (size_t w = 0; w < workers; ++w) {
    for (const std::vector<Value>& replica : by_rank) {
      for (const Value& value : replica) {
        LOCKSTEP_ASSIGN_OR_RETURN(for_worker[w].emplace_back(),
                                  SliceOf(value, w, workers));
      }
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<Parcel> parcels,
      group.Scatter(absl::StrCat(description, " in slices"),
                    std::move(for_worker)));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckParcels(description, parcels, values * by_rank.size()));
  std::vector<Leaf> reduced;
  for (size_t i = 0; i < values; ++i) {
    std::vector<Value> of_ranks;
    for (const Parcel& parcel : parcels) {
      // By worker, then by replica: the order in which whole values are added
      // up, so the sums have the same bits.
      for (size_t k = i; k < parcel->size(); k += values) {
        of_ranks.push_back(std::get<Value>((*parcel)[k]));
      }
    }
    LOCKSTEP_ASSIGN_OR_RETURN(reduced.emplace_back(),
                              lockstep::Reduce(op, SumOrder::kRank, of_ranks));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<Parcel> all,
      group.Exchange(absl::StrCat(description, ", reduced"),
                     std::move(reduced)));
  LOCKSTEP_RETURN_IF_ERROR(CheckParcels(description, all, values));
  std::vector<Value> results;
  for (size_t i = 0; i < values; ++i) {
    std::vector<const Value*> slices;
    for (const Parcel& parcel : all) {
      slices.push_back(&std::get<Value>((*parcel)[i]));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(results.emplace_back(),
                              Join(slices, by_rank[0][i].shape()));
  }
  return results;
}

}  // namespace lockstep::strategy
