#include "worker/replicas/replicated_gradient_source.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/collective/arithmetic.h"

namespace lockstep::worker {

// The caller's pass as a replica sees it: calls are passed on to the caller's
// thread.
class ReplicatedGradientSource::ReplicaPass final : public GradientPass {
 public:
  ReplicaPass(ReplicatedGradientSource& source, GradientClipper& clipper,
              GradientPass& outer)
      : source_(source), clipper_(clipper), outer_(outer) {}

  bool HasAllValues() const override { return outer_.HasAllValues(); }

  absl::Status NeedValues(size_t first, size_t count) override {
    return source_.crew_.Ask(
        [&] { return source_.NeedValues(first, count, outer_); });
  }

  absl::Status CheckWanted() override {
    return source_.crew_.Ask([&] { return outer_.CheckWanted(); });
  }

  void GradientReady(size_t variable) override {
    clipper_.Ready(variable, [this](size_t clipped, bool) { Tell(clipped); });
  }

  // Must be called when all gradients have been computed.
  void End() {
    clipper_.EndPass([this](size_t clipped, bool) { Tell(clipped); });
  }

 private:
  // Does not wait, so that the replica computes while the caller sums. Run()
  // returns after the call, so `outer` is still there.
  void Tell(size_t variable) {
    source_.crew_.Tell([&source = source_, &outer = outer_, variable] {
      source.Ready(variable, outer);
    });
  }

  ReplicatedGradientSource& source_;
  GradientClipper& clipper_;
  GradientPass& outer_;
};

ReplicatedGradientSource::ReplicatedGradientSource(
    std::vector<Replica> replicas, const ClippingConfig& clipping,
    const ParameterMemory& mean, const std::vector<bool>& clipped)
    : replicas_(std::move(replicas)),
      mean_(mean),
      has_value_(clipped.size()),
      ready_(clipped.size()),
      crew_(replicas_.size()) {
  // All gradients that are clipped have one type.
  const auto first = static_cast<size_t>(
      std::find(clipped.begin(), clipped.end(), true) - clipped.begin());
  const DType type = first < clipped.size() ? replicas_[0].memory->dtype(first)
                                            : DType::kFloat32;
  for (const Replica& replica : replicas_) {
    const ParameterMemory& memory = *replica.memory;
    clippers_.push_back(
        std::make_unique<GradientClipper>(clipping, type, [&memory, clipped] {
          GradientClipper::Gradients gradients;
          for (size_t v = 0; v < clipped.size(); ++v) {
            gradients.push_back(clipped[v] ? memory.gradient(v)
                                           : absl::Span<std::byte>());
          }
          return gradients;
        }));
  }
}

bool ReplicatedGradientSource::MayBeginEarly() const {
  return std::all_of(
      replicas_.begin(), replicas_.end(),
      [](const Replica& replica) { return replica.source->MayBeginEarly(); });
}

void ReplicatedGradientSource::PrepareEarly(const PassId& pass) {
  for (const Replica& replica : replicas_) replica.source->PrepareEarly(pass);
}

absl::Status ReplicatedGradientSource::Prepare(const PassId& pass,
                                               int64_t index) {
  for (const Replica& replica : replicas_) {
    LOCKSTEP_RETURN_IF_ERROR(replica.source->Prepare(pass, index));
  }
  return absl::OkStatus();
}

absl::Status ReplicatedGradientSource::Begin(int64_t index,
                                             GradientPass& pass) {
  std::fill(has_value_.begin(), has_value_.end(), false);
  return crew_.Run([&](size_t r) {
    ReplicaPass own(*this, *clippers_[r], pass);
    return replicas_[r].source->Begin(index, own);
  });
}

absl::StatusOr<GradientResult> ReplicatedGradientSource::Finish(
    GradientPass& pass) {
  std::fill(ready_.begin(), ready_.end(), 0);
  std::vector<GradientResult> results(replicas_.size());
  LOCKSTEP_RETURN_IF_ERROR(crew_.Run([&](size_t r) {
    clippers_[r]->BeginPass();
    ReplicaPass own(*this, *clippers_[r], pass);
    LOCKSTEP_ASSIGN_OR_RETURN(results[r], replicas_[r].source->Finish(own));
    own.End();
    return absl::OkStatus();
  }));
  return ResultOfReplicas(results);
}

absl::Status ReplicatedGradientSource::NeedValues(size_t first, size_t count,
                                                  GradientPass& pass) {
  const auto begin = has_value_.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  // Another replica has waited for these values already.
  if (std::all_of(begin, end, [](bool has) { return has; })) {
    return absl::OkStatus();
  }
  LOCKSTEP_RETURN_IF_ERROR(pass.NeedValues(first, count));
  std::fill(begin, end, true);
  return absl::OkStatus();
}

void ReplicatedGradientSource::Ready(size_t variable, GradientPass& pass) {
  // The last replica's report triggers the sum; the request's mutex makes the
  // gradients that other threads wrote visible here.
  if (++ready_[variable] < replicas_.size()) return;
  // Not the type of worker/compute, which has the same name.
  const lockstep::ElementType type = ElementTypeOf(mean_.dtype(variable));
  const absl::Span<std::byte> mean = mean_.gradient(variable);
  std::vector<const std::byte*> terms;
  for (const Replica& replica : replicas_) {
    terms.push_back(replica.memory->gradient(variable).data());
  }
  SumInOrder(type, mean.size() / SizeOf(type), terms,
             static_cast<double>(replicas_.size()), mean.data());
  pass.GradientReady(variable);
}

}  // namespace lockstep::worker
