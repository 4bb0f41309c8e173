#ifndef LOCKSTEP_WORKER_SESSION_WORKLOAD_H_
#define LOCKSTEP_WORKER_SESSION_WORKLOAD_H_

#include <cstddef>
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

  // A membership begins. Reads the data and makes the model, unless an earlier
  // membership has done so.
  //
  // Errors: the job cannot be trained by this process; the member leaves with
  // the message
  virtual absl::Status Begin(const ChiefClient::Registration& membership) = 0;

  // How far Begin() is, for people, e.g. "reads train.npy, 40 %, 12 s to go";
  // empty where that is not known. Any thread may call it, at any time.
  virtual std::string Beginning() const { return ""; }

  // The variables, in the order that all workers share.
  virtual const std::vector<VariableSpec>& variables() const = 0;
  // The shape of one example; absent for a model with tables, and where the
  // data is unknown.
  virtual std::optional<ExampleShape> examples() const { return std::nullopt; }

  // The elements of a variable whose initializer is kGiven, row-major, as the
  // process holds them before the job gives it others.
  //
  //   kFailedPrecondition  they have been overwritten since
  virtual absl::StatusOr<absl::Span<const std::byte>> initial_value(
      size_t /*variable*/) {
    return absl::FailedPreconditionError("the servers draw the values");
  }

  // Returns the code that computes gradients in `memory`. Each membership has
  // memory of its own.
  virtual absl::StatusOr<std::unique_ptr<GradientSource>> MakeSource(
      std::shared_ptr<ParameterMemory> memory) = 0;

  // True if gradients are clipped as the job says before they are reported.
  virtual bool clips() const { return false; }

  // Ends the wait of a pass at hand for code outside of the process's control;
  // the pass then returns kCancelled.
  virtual void Cancel() {}
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_WORKLOAD_H_
