#include "strategy/values/replica_group.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/collective/gather.h"
#include "common/text/utf8.h"
#include "strategy/values/sliced_reduction.h"

namespace lockstep::strategy {
namespace {

using Form = Distributed::Form;

ElementType TypeOf(const Leaf& leaf) {
  const Value* value = std::get_if<Value>(&leaf);
  return value != nullptr ? value->type()
                          : std::get<Slices>(leaf).values.type();
}

bool IsSparse(const Distributed& value) {
  return std::holds_alternative<Slices>(value.local[0]);
}

// Rows of slices may differ in number.
std::string KindOf(const Distributed& value) {
  const std::string kind =
      IsSparse(value)
          ? absl::StrCat("slices of ",
                         std::string(NameOf(TypeOf(value.local[0]))))
          : DescriptionOf(value.local[0]);
  return value.label.empty() ? kind : absl::StrCat(kind, " for ", value.label);
}

// Names the values of a call if they take several exchanges. The first one has
// it, so that workers whose calls differ learn it before any has a result.
std::string BatchOf(absl::Span<const Distributed> values) {
  const bool apart =
      std::any_of(values.begin(), values.end(), [](const Distributed& value) {
        return IsSparse(value) || value.form == Form::kPlain;
      });
  // Other values travel in one exchange, whose description has them all.
  if (!apart || values.size() == 1) return "";
  std::string batch = absl::StrCat(", one of ", values.size(), " values:");
  for (const Distributed& value : values) {
    absl::StrAppend(&batch, " ", KindOf(value));
  }
  return batch;
}

std::string NameOfOp(ReduceOp op) {
  return op == ReduceOp::kSum ? "SUM" : "MEAN";
}

absl::Status Unclear(const char* form, const char* advice) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the sum of a ", form, " value over replicas is unclear; ", advice));
}

// The axes in descending order, counted from the front.
absl::StatusOr<std::vector<int64_t>> Descending(absl::Span<const int64_t> axes,
                                                const Value& value) {
  const auto rank = static_cast<int64_t>(value.shape().size());
  std::vector<int64_t> sorted;
  for (const int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      return absl::InvalidArgumentError(absl::StrCat(
          "axis is ", axis, ", but ", value.Description(), " has ", rank));
    }
    sorted.push_back(axis < 0 ? axis + rank : axis);
  }
  // Descending: removing an axis leaves the numbers of those before it.
  std::sort(sorted.rbegin(), sorted.rend());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("axes are [", absl::StrJoin(axes, ","),
                     "], which has one of them twice"));
  }
  return sorted;
}

}  // namespace

bool ReplicaGroup::Rings(Toward toward, ElementType type) const {
  if (options_.order == SumOrder::kRank) return false;
  // Where TensorFlow has rings: every reduction of several workers; in one
  // process all-reduces and batches, but not of int32.
  if (workers_ != nullptr) return true;
  return options_.kind == Kind::kMirrored && toward == Toward::kAll &&
         type != ElementType::kInt32;
}

absl::Status ReplicaGroup::CheckComponents(const Distributed& value) const {
  const bool each = value.form == Form::kPerReplica;
  const size_t wanted = each ? static_cast<size_t>(local()) : 1;
  if (value.local.size() == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a ", each ? "per-replica" : "shared", " value has ",
                   value.local.size(), " components, but must have ", wanted,
                   each ? ", one for each replica of this worker" : ""));
}

absl::Status ReplicaGroup::CheckBatch(
    absl::Span<const Distributed> values) const {
  // As MirroredStrategy, which refuses int32 among several values also if all
  // are int32.
  if (options_.kind != Kind::kMirrored || options_.order != SumOrder::kRing ||
      values.size() < 2) {
    return absl::OkStatus();
  }
  for (const Distributed& value : values) {
    if (!value.local.empty() && TypeOf(value.local[0]) == ElementType::kInt32) {
      return absl::InvalidArgumentError(
          "int32 must be reduced in a call of its own, as with TensorFlow; or "
          "set the order of sums to kRank");
    }
  }
  return absl::OkStatus();
}

absl::Status ReplicaGroup::Check(ReduceOp op, Toward toward,
                                 absl::Span<const Distributed> values) const {
  if (toward == Toward::kAll) LOCKSTEP_RETURN_IF_ERROR(CheckBatch(values));
  for (const Distributed& value : values) {
    LOCKSTEP_RETURN_IF_ERROR(CheckComponents(value));
    if (op == ReduceOp::kMean || options_.kind == Kind::kDefault ||
        options_.kind == Kind::kOneDevice) {
      continue;
    }
    if (value.form == Form::kMirrored && !HasOneCopy(options_.kind)) {
      return Unclear("mirrored", "all replicas have the same value already");
    }
    if (value.form == Form::kPlain && workers() == 1 && local() > 1) {
      return Unclear("plain", "give each replica a value of its own");
    }
  }
  return absl::OkStatus();
}

bool ReplicaGroup::IsAlone(ReduceOp op, const Distributed& value) const {
  if (options_.kind == Kind::kDefault || options_.kind == Kind::kOneDevice) {
    return true;
  }
  if (value.form == Form::kMirrored && !HasOneCopy(options_.kind) &&
      op == ReduceOp::kMean) {
    return true;
  }
  return value.form == Form::kPlain && workers() == 1;
}

absl::StatusOr<std::vector<std::vector<Leaf>>> ReplicaGroup::ByRank(
    const std::string& description,
    absl::Span<const Distributed* const> values) const {
  // Every value has as many leaves at each worker.
  const size_t ranks =
      values[0]->form == Form::kPlain ? 1 : static_cast<size_t>(local());
  std::vector<Leaf> mine;
  for (size_t r = 0; r < ranks; ++r) {
    for (const Distributed* value : values) {
      mine.push_back(value->local[value->local.size() == 1 ? 0 : r]);
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Parcel> parcels,
                            FromAllWorkers(description, std::move(mine)));
  std::vector<std::vector<Leaf>> by_rank;
  for (const Parcel& parcel : parcels) {
    if (parcel->size() != ranks * values.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(description, ": one worker has ", ranks * values.size(),
                       " values, another ", parcel->size(),
                       "; all workers must have the same number of replicas"));
    }
    for (size_t r = 0; r < ranks; ++r) {
      const auto first =
          parcel->begin() + static_cast<std::ptrdiff_t>(r * values.size());
      by_rank.emplace_back(first,
                           first + static_cast<std::ptrdiff_t>(values.size()));
    }
  }
  return by_rank;
}

absl::StatusOr<std::optional<std::vector<Value>>> ReplicaGroup::ReduceSliced(
    ReduceOp op, Toward toward, const std::string& description,
    absl::Span<const Distributed* const> values) const {
  const size_t ranks =
      values[0]->form == Form::kPlain ? 1 : static_cast<size_t>(local());
  std::vector<std::vector<Value>> by_rank(ranks);
  size_t bytes = 0;
  for (size_t r = 0; r < ranks; ++r) {
    for (const Distributed* value : values) {
      const Leaf& leaf = value->local[value->local.size() == 1 ? 0 : r];
      const Value* const dense = std::get_if<Value>(&leaf);
      // Replicas that differ are refused by the exchange of everything.
      if (dense == nullptr || Rings(toward, dense->type()) ||
          DescriptionOf(leaf) != DescriptionOf(value->local[0])) {
        return std::nullopt;
      }
      if (r == 0) bytes += dense->bytes().size();
      by_rank[r].push_back(*dense);
    }
  }
  // All workers decide alike, or fail: the description that they compare has
  // the types, shapes and replicas from which this follows.
  if (workers_ == nullptr || !PaysToSlice(*workers_, bytes)) {
    return std::nullopt;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<Value> reduced,
      ReduceInSlices(*workers_, op,
                     absl::StrCat(description, " of ", ranks, " replicas"),
                     by_rank));
  return reduced;
}

absl::StatusOr<std::vector<Value>> ReplicaGroup::ReduceDense(
    ReduceOp op, Toward toward, absl::Span<const Distributed* const> values,
    std::optional<int64_t> bytes_per_pack, const std::string& batch) const {
  std::string description = absl::StrCat("reduce ", NameOfOp(op));
  for (const Distributed* value : values) {
    absl::StrAppend(&description, " ", KindOf(*value));
  }
  // Workers that add up in other orders would have other bits.
  if (Rings(toward, TypeOf(values[0]->local[0]))) {
    absl::StrAppend(&description, " around a ring",
                    bytes_per_pack.has_value()
                        ? absl::StrCat(" in packs of ", *bytes_per_pack)
                        : "");
  }
  absl::StrAppend(&description, batch);
  LOCKSTEP_ASSIGN_OR_RETURN(auto sliced,
                            ReduceSliced(op, toward, description, values));
  if (sliced.has_value()) return *std::move(sliced);
  LOCKSTEP_ASSIGN_OR_RETURN(auto by_rank, ByRank(description, values));
  std::vector<std::vector<Value>> dense;
  for (std::vector<Leaf>& rank : by_rank) {
    std::vector<Value>& row = dense.emplace_back();
    for (Leaf& leaf : rank) {
      if (!std::holds_alternative<Value>(leaf)) {
        return absl::InvalidArgumentError(
            absl::StrCat(description, ": a replica has ", DescriptionOf(leaf),
                         "; all replicas must reduce the same"));
      }
      row.push_back(std::get<Value>(std::move(leaf)));
    }
  }
  const SumOrder order =
      Rings(toward, dense[0][0].type()) ? SumOrder::kRing : SumOrder::kRank;
  // One value in all is not divided: the mean of integers keeps their type, as
  // in TensorFlow.
  if (dense.size() == 1) {
    for (const Value& value : dense[0]) LOCKSTEP_RETURN_IF_ERROR(value.Check());
    return dense[0];
  }
  // Packs move the borders of a ring's chunks, and so change bits. In rank
  // order they would change none.
  if (bytes_per_pack.has_value() && order == SumOrder::kRing) {
    return ReducePacked(op, order, dense, *bytes_per_pack);
  }
  std::vector<Value> results;
  for (size_t i = 0; i < values.size(); ++i) {
    std::vector<Value> of_ranks;
    for (std::vector<Value>& rank : dense) {
      of_ranks.push_back(std::move(rank[i]));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(
        results.emplace_back(),
        lockstep::Reduce(op,
                         Rings(toward, of_ranks[0].type()) ? SumOrder::kRing
                                                           : SumOrder::kRank,
                         of_ranks));
  }
  return results;
}

absl::StatusOr<Slices> ReplicaGroup::ReduceSparse(
    ReduceOp op, const Distributed& value, const std::string& batch) const {
  const Distributed* const values[] = {&value};
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto by_rank,
      ByRank(absl::StrCat("reduce ", NameOfOp(op), " ", KindOf(value), batch),
             values));
  std::vector<Slices> slices;
  for (std::vector<Leaf>& rank : by_rank) {
    Slices* const sparse = std::get_if<Slices>(&rank[0]);
    if (sparse == nullptr) {
      return absl::InvalidArgumentError(
          "some replicas have slices, others a dense value");
    }
    slices.push_back(std::move(*sparse));
  }
  return ReduceSlices(op, slices);
}

absl::Status ReplicaGroup::TellIfRefused(
    const std::string& call, absl::Status mine,
    const CommunicationOptions& options) const {
  if (workers_ == nullptr || mine.ok()) return mine;
  const bool valid = options.Validate().ok();
  const ScopedTimeout timeout(workers_,
                              valid ? options.GroupTimeout() : std::nullopt);
  // Succeeds where all workers refuse the call for the same reason.
  workers_
      ->Exchange(ToUtf8(absl::StrCat(call, ", refused: ", mine.message())), {})
      .status()
      .IgnoreError();
  return mine;
}

absl::StatusOr<std::vector<Leaf>> ReplicaGroup::Reduce(
    ReduceOp op, Toward toward, absl::Span<const Distributed> values,
    const CommunicationOptions& options) const {
  absl::Status valid = options.Validate();
  valid.Update(Check(op, toward, values));
  // Without an exchange the other workers do not wait for this one.
  const bool waits = std::any_of(
      values.begin(), values.end(),
      [&](const Distributed& value) { return !IsAlone(op, value); });
  if (waits) valid = TellIfRefused(NameOfOp(op), std::move(valid), options);
  LOCKSTEP_RETURN_IF_ERROR(valid);
  const ScopedTimeout timeout(workers_, options.GroupTimeout());
  std::vector<Leaf> results(values.size());
  std::vector<size_t> packed;
  // Returned last: the other workers wait for the exchanges of this call.
  absl::Status fit;
  std::string batch = workers_ == nullptr ? "" : BatchOf(values);
  for (size_t i = 0; i < values.size(); ++i) {
    const Distributed& value = values[i];
    if (IsAlone(op, value)) {
      fit.Update(CheckLeaf(value.local[0]));
      results[i] = value.local[0];
    } else if (IsSparse(value)) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          results[i], ReduceSparse(op, value, std::exchange(batch, "")));
    } else if (value.form == Form::kPlain) {
      // Alone: plain values have one component for each worker, the others one
      // for each replica.
      const Distributed* const alone_values[] = {&value};
      LOCKSTEP_ASSIGN_OR_RETURN(
          std::vector<Value> one,
          ReduceDense(op, toward, alone_values, std::nullopt,
                      std::exchange(batch, "")));
      results[i] = std::move(one[0]);
    } else {
      packed.push_back(i);
    }
  }
  if (packed.empty()) {
    if (!fit.ok()) return fit;
    return results;
  }
  std::vector<const Distributed*> dense;
  for (const size_t i : packed) dense.push_back(&values[i]);
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<Value> reduced,
      ReduceDense(op, toward, dense, options.bytes_per_pack, ""));
  for (size_t i = 0; i < packed.size(); ++i) {
    results[packed[i]] = std::move(reduced[i]);
  }
  if (!fit.ok()) return fit;
  return results;
}

absl::StatusOr<ReplicaGroup::AlongAxes> ReplicaGroup::SumAlongAxes(
    ReduceOp op, const Distributed& value,
    absl::Span<const int64_t> axes) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckComponents(value));
  if (IsSparse(value)) {
    return absl::InvalidArgumentError("slices have no axes to reduce along");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> named,
                            Descending(axes, std::get<Value>(value.local[0])));
  // Sums along different axes may have one shape, and the mean begins with the
  // same exchange as the sum, so workers compare both.
  const std::string label = absl::StrCat(
      "the ", NameOfOp(op), " along axes [", absl::StrJoin(named, ","), "]",
      value.label.empty() ? "" : " for ", value.label);
  // Each replica sums its own along the axes, and counts: the mean of the
  // replicas' means would give a short batch too much weight.
  AlongAxes along{{Form::kPerReplica, {}, label},
                  {Form::kPerReplica, {}, label}};
  for (size_t r = 0; r < static_cast<size_t>(local()); ++r) {
    const auto* mine =
        std::get_if<Value>(&value.local[value.local.size() == 1 ? 0 : r]);
    if (mine == nullptr) {
      return absl::InvalidArgumentError(
          "some replicas have slices, others a dense value");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> sorted,
                              Descending(axes, *mine));
    Value sum = *mine;
    int64_t count = 1;
    for (const int64_t axis : sorted) {
      count *= mine->shape()[static_cast<size_t>(axis)];
      LOCKSTEP_ASSIGN_OR_RETURN(sum, SumAlong(sum, axis));
    }
    along.sums.local.emplace_back(std::move(sum));
    along.counts.local.emplace_back(
        Value::Of<int64_t>(ElementType::kInt64, {}, {count}));
  }
  return along;
}

absl::StatusOr<Value> ReplicaGroup::ReduceAlong(
    ReduceOp op, const Distributed& value,
    absl::Span<const int64_t> axes) const {
  if (axes.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Leaf> reduced,
                              Reduce(op, Toward::kPlace, {&value, 1}));
    if (const Value* dense = std::get_if<Value>(&reduced[0])) return *dense;
    return ToDense(std::get<Slices>(reduced[0]));
  }
  const absl::StatusOr<AlongAxes> along = SumAlongAxes(op, value, axes);
  LOCKSTEP_RETURN_IF_ERROR(TellIfRefused(
      absl::StrCat(NameOfOp(op), " along axes"), along.status(), {}));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<Leaf> total,
      Reduce(ReduceOp::kSum, Toward::kPlace, {&along->sums, 1}));
  if (op == ReduceOp::kSum) return std::get<Value>(total[0]);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<Leaf> count,
      Reduce(ReduceOp::kSum, Toward::kPlace, {&along->counts, 1}));
  return Mean(
      std::get<Value>(total[0]),
      static_cast<double>(std::get<Value>(count[0]).Elements<int64_t>()[0]));
}

absl::StatusOr<Leaf> ReplicaGroup::Gather(
    const Distributed& value, int64_t axis,
    const CommunicationOptions& options) const {
  absl::Status valid = options.Validate();
  valid.Update(CheckComponents(value));
  LOCKSTEP_RETURN_IF_ERROR(TellIfRefused("gather", std::move(valid), options));
  const ScopedTimeout timeout(workers_, options.GroupTimeout());
  const bool one = options_.kind == Kind::kDefault ||
                   options_.kind == Kind::kOneDevice || replicas() == 1 ||
                   (value.form == Form::kPlain && workers() == 1);
  // TensorFlow makes slices dense only where there is something to join.
  if (one && IsSparse(value)) return value.local[0];
  const Distributed* const values[] = {&value};
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto by_rank,
      ByRank(absl::StrCat("gather along axis ", axis, " of ",
                          std::string(NameOf(TypeOf(value.local[0])))),
             values));
  std::vector<Value> parts;
  for (const std::vector<Leaf>& rank : by_rank) {
    if (const Value* dense = std::get_if<Value>(&rank[0])) {
      parts.push_back(*dense);
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(parts.emplace_back(),
                              ToDense(std::get<Slices>(rank[0])));
  }
  // TensorFlow counts axes from the end here only under CentralStorageStrategy;
  // lockstep::Gather() refuses negative ones.
  if (HasOneCopy(options_.kind) && axis < 0) {
    axis += static_cast<int64_t>(parts[0].shape().size());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Value joined, lockstep::Gather(parts, axis));
  return joined;
}

absl::StatusOr<std::vector<Parcel>> ReplicaGroup::FromAllWorkers(
    const std::string& description, std::vector<Leaf> mine) const {
  if (workers_ != nullptr) {
    return workers_->Exchange(description, std::move(mine));
  }
  return std::vector<Parcel>{
      std::make_shared<const std::vector<Leaf>>(std::move(mine))};
}

absl::StatusOr<Value> ReplicaGroup::FromFirstWorker(
    const std::string& description,
    const std::function<absl::StatusOr<Value>()>& make) const {
  if (workers_ == nullptr) return make();
  absl::StatusOr<Value> mine;
  std::vector<Leaf> leaves;
  if (worker() == 0) {
    mine = make();
    if (mine.ok()) leaves.push_back(*mine);
  }
  // Also after an error: the empty parcel tells it to the others, which would
  // wait in vain.
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Parcel> parcels,
                            workers_->Exchange(description, std::move(leaves)));
  if (worker() == 0) return mine;
  leaves = *parcels[0];
  if (leaves.size() != 1 || !std::holds_alternative<Value>(leaves[0])) {
    return absl::InvalidArgumentError(
        "worker 0 has no initial value to send; its own error says why");
  }
  return std::get<Value>(leaves[0]);
}

}  // namespace lockstep::strategy
