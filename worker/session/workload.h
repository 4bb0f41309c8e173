#ifndef LOCKSTEP_WORKER_SESSION_WORKLOAD_H_
#define LOCKSTEP_WORKER_SESSION_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/membership/chief_client.h"
#include "common/numeric/dtype.h"
#include "common/plan/example_shape.h"
#include "common/plan/variable_spec.h"
#include "worker/loop/gradient_source.h"
#include "worker/loop/training_loop.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// Workload is the work of a member of a job: its variables, and the code that
// computes their gradients.
//
//   Begin -> variables, examples, initial_value -> MakeSource -> (passes)
//
// Threads: one thread calls; Cancel() may come from any other.
class Workload {
 public:
  virtual ~Workload() = default;

  // Must be called when a membership begins, once the source of the one before
  // is destroyed. Reads the data and makes the model, unless an earlier call
  // has done so.
  //
  // Errors: this process cannot train the job; the member leaves the job, with
  // the message as its reason
  virtual absl::Status Begin(const ChiefClient::Registration& membership) = 0;

  // The progress of Begin() as text for people, such as "reads train.npy, 40 %,
  // 12 s to go"; empty if it is unknown. Any thread may call this at any time.
  virtual std::string Beginning() const { return ""; }

  // The variables of the model, in an order that must be equal on all workers.
  virtual const std::vector<VariableSpec>& variables() const = 0;
  // The shape of one example; absent for a model with tables, and for a program
  // that reads its data itself.
  virtual std::optional<ExampleShape> examples() const { return std::nullopt; }
  // The training examples, of which each worker takes a share; 0: not known, as
  // for such a program.
  virtual int64_t num_examples() const { return 0; }

  // The initial elements, row-major, of a variable whose initializer is kGiven.
  // May be called only before the first pass.
  //
  //   kFailedPrecondition  a pass has overwritten them
  virtual absl::StatusOr<absl::Span<const std::byte>> initial_value(
      size_t /*variable*/) {
    return absl::FailedPreconditionError("the servers draw the values");
  }

  // Returns the source of the membership's passes, which reads values and
  // writes gradients in `memory`. Called once per membership. Errors: as
  // Begin()
  virtual absl::StatusOr<std::unique_ptr<GradientSource>> MakeSource(
      std::shared_ptr<ParameterMemory> memory) = 0;

  // The passes of the source that make one pass of the worker, whose gradients
  // are the mean of theirs: one for each replica of a source that computes for
  // one at a time. To the source, batch `index` of the worker is its batches
  // index x turns() to index x turns() + turns() - 1.
  virtual int turns() const { return 1; }

  // True if the memory of the source is to have the values of the last step
  // when training or the input has ended; HasLastValues() then tells that they
  // are there.
  virtual bool wants_last_values() const { return false; }
  virtual void HasLastValues(const TrainingLoop::LastValues& /*last*/) {}

  // True if the source clips gradients as the job demands, before it reports
  // them ready; otherwise the training loop clips them.
  virtual bool clips() const { return false; }

  // If a pass waits for code outside of this project, such as a user's program,
  // makes that pass return kCancelled.
  virtual void Cancel() {}
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_WORKLOAD_H_
