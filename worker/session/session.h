#ifndef LOCKSTEP_WORKER_SESSION_SESSION_H_
#define LOCKSTEP_WORKER_SESSION_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/numeric/dtype.h"
#include "common/plan/figure.h"
#include "common/plan/variable_spec.h"

namespace lockstep::worker {

// A variable of a program, and the values that it starts with.
struct SessionVariable {
  VariableSpec spec;
  // The elements of spec.shape, row-major; the memory must be valid until the
  // first Next() has returned true. Empty: the servers draw the values as
  // spec.initializer says. The chief takes the values of one worker, the first
  // that asks for the plan.
  absl::Span<const std::byte> initial{};
};

// One pass: the gradient of share `share` of global step `number`.
struct SessionStep {
  int64_t number = 0;  // committed steps; the pass computes the next one
  // 0 unless there are fewer workers than gradients; with `work: SHARED` the
  // number of the micro-batch of the step.
  int share = 0;
  int64_t batch = 0;  // as Examples() takes it
  // For random numbers of the pass: the same if the pass is computed again, and
  // another for each worker, step and share; with `work: SHARED` the same on
  // all workers.
  uint64_t seed = 0;
  // Changes when values and gradients have moved to other memory, because this
  // worker has joined again.
  int64_t membership = 0;
};

// What a program should know of the job.
struct SessionJob {
  std::string name;
  uint64_t seed = 0;
  int64_t batch_size = 0;   // examples per worker and pass
  int64_t train_steps = 0;  // the global step that ends training
  int worker = 0;           // index of this task
  int num_workers = 0;
  // Above 1: a worker may make several passes of one step, so that the same
  // values are read more than once.
  int passes_per_step = 1;
};

// Session makes a program a worker of a job: the one that TF_CONFIG names.
//
//   Join -> Next -> (compute) -> Ready, for each variable -> Finish
//            ^                                                 |
//            `-------------------------------------------------'
//
// Next() waits for the token of a step and for the values of the variables.
// Ready() starts to send a gradient while the program computes the others.
// Heartbeats, retries, shared memory with servers of this host, redone steps
// and a new membership after a lost one are the session's.
//
// Threads: one thread calls; RequestStop() and Fail() may come from any. A
// process has at
//          most one session at a time, and a child made by fork() none.
class Session {
 public:
  struct Options {
    std::string tf_config = {};  // file; empty: the environment variable
    // As the flag --tls_dir; empty: the environment variable LOCKSTEP_TLS_DIR,
    // which `lockstep run` sets. Without either there are no certificates.
    std::string tls_dir = {};
    std::string expected_job = {};  // job name to insist on; empty: any
    std::string log_level = "warning";
    bool shared_memory = true;  // with servers of this host
    int pollers = 0;            // as the flag --pollers
    int connections = 0;        // as the flag --connections
    // For a chief that has never answered.
    absl::Duration chief_wait = absl::Minutes(10);
    // End when the process that started this one ends.
    bool exit_with_parent = false;
    // Where the process hosts the chief, because the cluster has no chief task:
    // the job file, or else the environment variable LOCKSTEP_JOB; and
    // overrides "key=value" as the flag --set takes them, after those of
    // LOCKSTEP_SET, of which each is a line.
    std::string job_file = {};
    std::vector<std::string> settings = {};
    // Where it hosts the worker's mirror, because the cluster has no ps: as the
    // flag --state_dir; empty: the environment variable LOCKSTEP_STATE_DIR, or
    // that flag's default.
    std::string state_dir = {};
    // Where it hosts either: as the flag --status_address; empty: the
    // environment variable LOCKSTEP_STATUS_ADDRESS.
    std::string status_address = {};
  };

  // Begins to join the job in a thread of its own; Next() has the outcome.
  //
  //   kInvalidArgument     TF_CONFIG, an address or a variable that cannot be;
  //                        no variable; names the field and the fix
  //   kFailedPrecondition  this process has a session
  //   kNotFound            this task hosts the chief, and there is no job file
  //   kUnavailable         the address of a hosted role is taken
  static absl::StatusOr<std::unique_ptr<Session>> Join(
      const Options& options, const std::vector<SessionVariable>& variables);

  // Leaves the job, as RequestStop("the program has ended"), unless it has
  // ended; waits for that.
  ~Session();

  // What a call of Next() found.
  enum class Turn {
    kNothing,  // nothing yet: call again
    kRows,     // tables only: choose rows of `step`, then call Pull()
    kStep,     // values are there: compute `step`
    kEnded,    // there are no more passes; see end()
  };

  // Waits at most `timeout` for the next pass.
  //
  //   kFailedPrecondition  the pass at hand was not finished; or this process
  //                        is a child of the one that has joined
  absl::StatusOr<Turn> Next(absl::Duration timeout, SessionStep& step);

  // After kEnded:
  //   kOk         training is over, or the input is
  //   kCancelled  the job was stopped, or this worker
  //   others      the job failed, the chief is gone, or this worker cannot take
  //               part; the chief's reason
  absl::Status end() const;
  // True while this process hosts the chief or a mirror of a job that has not
  // ended: its end stops the job.
  bool carries_job() const;
  // The exit code for end(), as the README's table has it; while the process
  // carries the job, that of a stop: 0 would say that the job is done.
  int exit_code() const;

  // Valid once Next() has returned kRows or kStep.
  SessionJob job() const;

  // Memory of a variable's elements, row-major; of a table, of the chosen rows,
  // ascending by id. 64-byte aligned. Values may be read from Next() until
  // Ready() for that variable; gradients may be written in that time. The
  // memory stays allocated as long as `owner()`.
  absl::Span<const std::byte> value(size_t variable) const;
  absl::Span<std::byte> gradient(size_t variable) const;
  std::shared_ptr<const void> owner() const;
  // With a step at hand, before Ready() for the variable: leaves the memory of
  // value(variable) to the program, which may read and write it until it calls
  // this again for that variable, and only then. value(variable) is other
  // memory from now on, whose contents are defined from the next step on. A
  // pass that begins again with the same values, also one of PullRows(), must
  // pull them anew.
  //
  //   kInvalidArgument     a table, or no variable
  //   kFailedPrecondition  no step is at hand, or the gradient was handed in
  //   kResourceExhausted   no memory for it; nothing has changed
  absl::Status TakeValue(size_t variable);

  // kRows: chooses the rows of a table that the step uses. With a step
  // at hand, before the first Ready(): chooses others, with gradients of zeros
  // and without values until PullRows().
  //
  //   kInvalidArgument     no table, or a row that it does not have
  //   kFailedPrecondition  no step is at hand, or gradients were handed in
  absl::Status ChooseRows(size_t variable, std::vector<int64_t> ids);
  // The chosen rows, ascending, each once.
  absl::Span<const int64_t> rows(size_t variable) const;
  // kRows: goes on; tables without chosen rows have none in this step. Next()
  // then returns kStep, or another step if this one is over.
  absl::Status Pull();

  // kStep: waits for the values of rows that were chosen anew.
  //
  //   kFailedPrecondition  also: gradients were handed in
  //   kAborted             the step is over: call Next()
  absl::Status PullRows();

  // The errors of the calls below:
  //   kAborted             the pass is not needed any more: call Next()
  //   kFailedPrecondition  no step is at hand, or it is finished

  // The variable's gradient is in gradient(variable), and will be sent once
  // those of all variables behind it are ready: all workers send in one order,
  // whatever order they compute in. So the first layer's variables should come
  // first.
  //
  //   kFailedPrecondition  also: it was handed in before, in this step
  absl::Status Ready(size_t variable);
  // In place of Ready(): this pass has no gradient of the variable. Fills
  // gradient(variable) with zeros. In strict mode it counts as zeros in the
  // mean, nothing of it is sent, and a variable of which no pass of the step
  // has a gradient keeps its value and its slots. In compatible mode it is a
  // gradient of zeros.
  //
  //   kFailedPrecondition  also: as Ready()
  absl::Status Absent(size_t variable);
  // Should be called now and then in a long computation: a backup's pass may be
  // in vain.
  absl::Status CheckWanted();
  // The program begins, or ends, to wait for the data of the pass: time that a
  // trace shows as reading. Calls in pairs.
  void BeginReading();
  void EndReading();
  // Hands the pass in. Variables without Ready() are absent. `loss` is the mean
  // over `examples`.
  absl::Status Finish(double loss, int64_t examples);

  // Returns this worker's examples of a batch, indices below `num_examples`:
  // the same whenever it is asked, also after a restart; with `work: SHARED`
  // the same on all workers.
  //
  //   kInvalidArgument  too few examples for one batch per worker
  //   kOutOfRange       the job's epochs are over
  absl::StatusOr<std::vector<int64_t>> Examples(int64_t num_examples,
                                                int64_t batch);

  // Reports a figure of the pass at hand for the job's status, in place of an
  // earlier one of that name.
  //
  //   kInvalidArgument  a name that cannot be, a value that is not finite, or
  //                     more than 16 names
  absl::Status Report(const NamedFigure& figure);

  // Leaves the job in good order: at once; a worker of an elastic job ends its
  // pass first, unless that takes long or it is asked again. A process that
  // hosts the chief or a mirror stops the job, which cannot go on without it.
  void RequestStop(const std::string& reason);
  // Leaves the job at once because the program has a fault and would fail
  // again. If too few workers are left for a step, the job fails, and its chief
  // gives `reason`. Without this call it waits for the worker until its lease
  // ends.
  void Fail(const std::string& reason);

 private:
  struct Parts;

  explicit Session(std::unique_ptr<Parts> parts);
  absl::Status CheckProcess() const;
  // Errors of ChooseRows(), but for rows that there are not.
  absl::Status CheckRows(size_t variable) const;
  absl::Status HandIn(size_t variable, bool absent);

  std::unique_ptr<Parts> parts_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_SESSION_H_
