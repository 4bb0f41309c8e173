#ifndef LOCKSTEP_WORKER_BLOCKS_PASS_SERIES_H_
#define LOCKSTEP_WORKER_BLOCKS_PASS_SERIES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/step_vocabulary.h"
#include "worker/loop/gradient_clipper.h"
#include "worker/loop/gradient_pass.h"
#include "worker/loop/gradient_source.h"

namespace lockstep::worker {

// PassSeries computes several batches as one pass: another source computes one
// after the other, and a derived class adds up their gradients. To the source
// behind it every batch is a pass.
//
//   Prepare(3)  Begin(3)  Finish(3)  Prepare(4)  Begin(4)  Finish(4)
//                         + keeps                          + adds, reports
//
// Gradients are clipped one by one, before they are added. They are reported
// while the last batch is computed.
//
// Threads: as GradientSource.
// Borrows: the source and the clipper, whose gradients must be those that the
//          source writes.
class PassSeries : public GradientSource {
 public:
  PassSeries(GradientSource& source, GradientClipper& clipper)
      : source_(source), clipper_(clipper) {}

  absl::Status Prepare(const PassId& pass, int64_t index) final;
  absl::Status Begin(int64_t index, GradientPass& pass) final;
  absl::StatusOr<GradientResult> Finish(GradientPass& pass) final;

 protected:
  // One batch of the series.
  struct Part {
    PassId pass;
    int64_t index = 0;  // of the batch
  };

  // Begins the series of `pass`, whose batch is `index`, and returns the number
  // of its batches. Errors end the training loop.
  virtual absl::StatusOr<int> Open(const PassId& pass, int64_t index) = 0;
  // The batch `number`, from 0, of the series of `pass`.
  virtual Part PartOf(const PassId& pass, int64_t index, int number) const = 0;
  // Forgets the gradients so far.
  virtual void Reset() = 0;
  // Adds the gradient of the current batch, number() of count(), which is in
  // the memory of the source: zeros if it is absent. After the last batch,
  // writes the result to that memory, and returns false if no batch has a
  // gradient for the variable.
  virtual bool Add(size_t variable, bool absent) = 0;
  // The result of all batches: at least one.
  virtual GradientResult Joined(
      const std::vector<GradientResult>& results) const = 0;

  int number() const { return number_; }
  int count() const { return count_; }

 private:
  class PartPass;

  // Finishes the current batch.
  absl::Status FinishPart(GradientPass& pass);

  GradientSource& source_;
  GradientClipper& clipper_;
  // The current pass.
  PassId pass_;
  int64_t index_ = 0;
  int count_ = 1;
  int number_ = 0;  // batches that are finished
  std::vector<GradientResult> results_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_BLOCKS_PASS_SERIES_H_
