#include "worker/blocks/pass_series.h"

#include "common/base/status_macros.h"

namespace lockstep::worker {

// One batch: what it reports goes into the sums, and after the last one the
// results go on to the pass of the series.
class PassSeries::PartPass final : public GradientPass {
 public:
  PartPass(PassSeries& series, GradientPass& pass)
      : series_(series), pass_(pass) {}

  bool HasAllValues() const override { return pass_.HasAllValues(); }
  absl::Status NeedValues(size_t first, size_t count) override {
    return pass_.NeedValues(first, count);
  }
  absl::Status PullRows() override { return pass_.PullRows(); }
  absl::Status PullNextBatch() override { return pass_.PullNextBatch(); }
  absl::Status CheckWanted() override { return pass_.CheckWanted(); }

  void GradientReady(size_t variable) override {
    series_.clipper_.Ready(variable, [this](size_t clipped, bool absent) {
      Add(clipped, absent);
    });
  }
  // Through the clipper, too: Add() writes the result to the memory of the
  // gradient, which must hold zeros until the clipper has read it.
  void GradientAbsent(size_t variable) override {
    series_.clipper_.Absent(variable, [this](size_t clipped, bool absent) {
      Add(clipped, absent);
    });
  }

  void EndClipping() {
    series_.clipper_.EndPass(
        [this](size_t clipped, bool absent) { Add(clipped, absent); });
  }

 private:
  void Add(size_t variable, bool absent) {
    const bool present =
        series_.count_ == 1 ? !absent : series_.Add(variable, absent);
    if (series_.number_ + 1 < series_.count_) return;
    if (present) {
      pass_.GradientReady(variable);
    } else {
      pass_.GradientAbsent(variable);
    }
  }

  PassSeries& series_;
  GradientPass& pass_;
};

absl::Status PassSeries::Prepare(const PassId& pass, int64_t index) {
  pass_ = pass;
  index_ = index;
  LOCKSTEP_ASSIGN_OR_RETURN(count_, Open(pass, index));
  const Part first = PartOf(pass_, index_, 0);
  return source_.Prepare(first.pass, first.index);
}

absl::Status PassSeries::Begin(int64_t /*index*/, GradientPass& pass) {
  number_ = 0;
  results_.clear();
  Reset();
  PartPass wrapped(*this, pass);
  return source_.Begin(PartOf(pass_, index_, 0).index, wrapped);
}

absl::Status PassSeries::FinishPart(GradientPass& pass) {
  clipper_.BeginPass();
  PartPass wrapped(*this, pass);
  LOCKSTEP_ASSIGN_OR_RETURN(const GradientResult result,
                            source_.Finish(wrapped));
  wrapped.EndClipping();
  results_.push_back(result);
  ++number_;
  return absl::OkStatus();
}

absl::StatusOr<GradientResult> PassSeries::Finish(GradientPass& pass) {
  LOCKSTEP_RETURN_IF_ERROR(FinishPart(pass));
  while (number_ < count_) {
    LOCKSTEP_RETURN_IF_ERROR(pass.CheckWanted());
    const Part part = PartOf(pass_, index_, number_);
    LOCKSTEP_RETURN_IF_ERROR(source_.Prepare(part.pass, part.index));
    // A program may have taken the values of the batch before.
    LOCKSTEP_RETURN_IF_ERROR(pass.PullNextBatch());
    PartPass wrapped(*this, pass);
    LOCKSTEP_RETURN_IF_ERROR(source_.Begin(part.index, wrapped));
    LOCKSTEP_RETURN_IF_ERROR(FinishPart(pass));
  }
  return Joined(results_);
}

}  // namespace lockstep::worker
