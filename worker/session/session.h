#ifndef LOCKSTEP_WORKER_SESSION_SESSION_H_
#define LOCKSTEP_WORKER_SESSION_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
  // The elements of spec.shape, row-major; the memory must be valid until
  // Next() has first returned kRows or kStep. Empty: the servers draw the
  // values by spec.initializer. A job starts with the values of one worker: the
  // first whose request for the plan reaches the chief.
  absl::Span<const std::byte> initial{};
};

// One pass: the gradient of share `share` of global step `number`, by one of
// the worker's replicas.
struct SessionStep {
  // Committed steps; the pass computes the next one. In an early step the last
  // of them may still be under way: it is committed once BeginGradients() has
  // returned true.
  int64_t number = 0;
  // 0 unless a step averages more gradients than there are workers; with
  // `work: SHARED` the number of the micro-batch in the step.
  int share = 0;
  // With `strategy.replicas_per_worker` above 1, the program computes for one
  // replica after the other, on the same values, and the worker pushes the mean
  // of their gradients. Otherwise 0.
  int replica = 0;
  int64_t batch = 0;  // the argument for Examples()
  // Seed for the random numbers of the pass. It differs by worker, replica,
  // step and share, and is equal if the pass is computed again; with
  // `work: SHARED` it is equal on all workers.
  uint64_t seed = 0;
  // Grows when this worker has joined again: values and gradients are then in
  // other memory.
  int64_t membership = 0;
  // Values may still arrive: see Session::Options::early_passes.
  bool early = false;
};

// The facts of a job that its programs use.
struct SessionJob {
  std::string name;
  uint64_t seed = 0;
  int64_t batch_size = 0;   // examples per pass
  int64_t train_steps = 0;  // the global step that ends training
  int worker = 0;           // index of this task
  int num_workers = 0;
  int replicas = 1;  // of each worker
  // The most passes that this worker may make of one step. If above 1, several
  // passes may read the same values, so a program must not overwrite them.
  int passes_per_step = 1;
};

// Session makes a user's program the worker task that TF_CONFIG names.
//
//   Join -> Next -> (compute) -> Ready, for each variable -> Finish
//            ^                                                 |
//            `-------------------------------------------------'
//
// Next() waits for the token of a step and for the values of the variables, or
// returns an early step before both: see Options::early_passes. Ready() starts
// to send a gradient while the program computes the others. The session sends
// heartbeats, repeats calls, shares memory with servers of this host, redoes
// steps, and joins again after its lease has expired. If a worker has several
// replicas, Next() returns a pass of each, in their order, before it returns
// one of another share or step, unless the step is over.
//
// Threads: one thread calls; RequestStop(), Fail() and Leave() may come from
//          any. A process may have one session at a time. A child made by
//          fork() must not use its parent's session: its calls return
//          kFailedPrecondition; those without a status to return, such as
//          RequestStop(), have no effect.
class Session {
 public:
  struct Options {
    std::string tf_config = {};  // file; empty: the environment variable
    // As the flag --tls_dir; empty: the environment variable LOCKSTEP_TLS_DIR,
    // which `lockstep run` sets. Without either there are no certificates.
    std::string tls_dir = {};
    std::string expected_job = {};  // job name to insist on; empty: any
    // Empty: the environment variable LOCKSTEP_LOG_LEVEL, which `lockstep run`
    // sets, or else "warning".
    std::string log_level = {};
    // If true, Next() may return a step while the gradients of the one before
    // are still on their way, with `early` set: in strict mode on parameter
    // servers, without backups, shared work and clipping by MEAN_GLOBAL_NORM,
    // for a program without tables whose workers have one replica each. In such
    // a step the program must call AwaitValues() before it reads values, and
    // BeginGradients() before it writes gradients. So it can compute its first
    // layers while the values of the others arrive.
    bool early_passes = false;
    bool shared_memory = true;  // with servers of this host
    int pollers = 0;            // as the flag --pollers
    int connections = 0;        // as the flag --connections
    // How long to wait for a chief that has never answered.
    absl::Duration chief_wait = absl::Minutes(10);
    // If true, this process ends when the process that started it ends.
    bool exit_with_parent = false;

    // Used if this process hosts the chief, because the cluster has no chief
    // task. The job file; empty: the environment variable LOCKSTEP_JOB.
    std::string job_file = {};
    // Used if this process hosts the chief: overrides "key=value" as the flag
    // --set takes them. They are applied after those of the environment
    // variable LOCKSTEP_SET, which has one on each line.
    std::vector<std::string> settings = {};
    // Used if this process hosts the worker's mirror, because the cluster has
    // no ps task. As the flag --state_dir; empty: the environment variable
    // LOCKSTEP_STATE_DIR, or else the flag's default.
    std::string state_dir = {};
    // Used if this process hosts the chief or a mirror. As the flag
    // --status_address; empty: the environment variable
    // LOCKSTEP_STATUS_ADDRESS.
    std::string status_address = {};
  };

  // Begins to join the job in a thread of the session; Next() returns kEnded if
  // that fails.
  //
  //   kInvalidArgument     TF_CONFIG, an address or a variable is not valid, or
  //                        there is no variable; names the field and the fix
  //   kFailedPrecondition  this process has a session already
  //   kNotFound            this task hosts the chief, and there is no job file
  //   kUnavailable         the address of a hosted role is taken
  static absl::StatusOr<std::unique_ptr<Session>> Join(
      const Options& options, const std::vector<SessionVariable>& variables);

  // Leaves the job as Leave() does, and waits until this process has left.
  ~Session();

  // The outcome of Next().
  enum class Turn {
    kNothing,  // the time is up: call again
    kRows,     // tables only: choose rows for `step`, then call Pull()
    kStep,     // all values are in memory, unless it is early: compute `step`
    kEnded,    // there are no more passes; see end()
  };

  // Waits at most `timeout` for the next pass, and describes it in `step`.
  //
  //   kFailedPrecondition  the program has not called Finish() for the current
  //                        pass; or this process is a forked child
  absl::StatusOr<Turn> Next(absl::Duration timeout, SessionStep& step);
  // Returns the step at hand again, if none of its gradients was handed in and
  // it is still wanted: for a program that an interruption has taken out of its
  // loop. nullopt: there is none, or the loop must go on with Next(). The
  // values of variables for which is_taken() is true are the program's already.
  std::optional<SessionStep> StepAgain();
  // True if TakeValue() was called in the step at hand.
  bool is_taken(size_t variable) const;

  // After kEnded:
  //   kOk         training or the input has ended
  //   kCancelled  the job or this worker was stopped
  //   others      the job failed, the chief is gone, or this worker cannot take
  //               part; with the chief's reason
  absl::Status end() const;
  // After kEnded: the step whose values value() has, those with which training
  // or this worker's input has ended. nullopt: value() is undefined, because
  // the job had no step for this worker, was stopped, or was done while this
  // worker was still in a pass, and the servers were gone before it had the
  // values; a checkpoint has them. Tables have no rows of use.
  std::optional<int64_t> last_step() const;
  // True while this process hosts the chief or a mirror of a job that has not
  // ended: if this process ends, the job stops. A job with elastic workers
  // needs only the process that hosts its chief.
  bool carries_job() const;
  // The exit code for end(), from the table in deploy/README.md. While
  // carries_job(), it is the code of a stopped job, since 0 would mean a
  // finished one. 1 after Fail().
  int exit_code() const;

  // Valid once Next() has returned kRows or kStep.
  SessionJob job() const;

  // The memory of a variable's elements, row-major, 64-byte aligned. For a
  // table it holds the chosen rows alone, ascending by id: its shape is
  // [rows(variable).size(), row elements]. Between Next() and Ready() for the
  // variable, the program may read value() and write gradient(), and it may
  // read value() while last_step() has a value; at other times it must not
  // touch either. The memory stays allocated while a copy of the
  // pointer `owner()` exists. Empty before the first step, and if there is no
  // variable of that index.
  absl::Span<const std::byte> value(size_t variable) const;
  absl::Span<std::byte> gradient(size_t variable) const;
  std::shared_ptr<const void> owner() const;
  // In an early step, after kStep: returns once the values of variables
  // [first, first + count) may be read. Should be called layer by layer, the
  // first layer first. value() must be called after it, as the values may
  // arrive in other memory. In other steps it returns at once.
  //
  //   kInvalidArgument     there are no such variables
  //   kFailedPrecondition  no step is open, or BeginGradients() was called
  //   kAborted             the step is over, or begins again: call Next()
  absl::Status AwaitValues(size_t first, size_t count);
  // In an early step, must be called before the program writes a gradient or
  // calls TakeValue(), Ready(), Absent() or Finish(). Waits at most `timeout`
  // until the step before is complete; all values are in memory then. False:
  // the time is up; call again. In other steps it returns true at once.
  //
  //   kFailedPrecondition  no step is open
  //   kAborted             the step is over, or begins again: call Next()
  absl::StatusOr<bool> BeginGradients(absl::Duration timeout);

  // After kStep, before Ready() for the variable: leaves the memory of
  // value(variable) to the program, which may read and write it until its next
  // TakeValue() for the same variable. From now on value(variable) is other
  // memory; it has defined contents from the next step on, also if a pass
  // begins again with the same values. PullRows() does not pull the variable.
  //
  //   kInvalidArgument     `variable` is a table, or there is none of that
  //                        index
  //   kFailedPrecondition  no step is open, or Ready() or Absent() was called
  //                        for the variable; or BeginGradients() must be called
  //   kAborted             the step is over: call Next()
  //   kResourceExhausted   there is no memory for it; nothing has changed
  absl::Status TakeValue(size_t variable);

  // After kRows: chooses the rows of a table that the step uses. After kStep,
  // before the first Ready(): replaces the chosen rows; their gradients are
  // zeros, and their values are undefined until PullRows(), which must be
  // called before the first Ready().
  //
  //   kInvalidArgument     `variable` is no table, or `ids` names a row that it
  //                        does not have
  //   kFailedPrecondition  no step is open, or Ready() or Absent() was called
  //                        in it
  //   kAborted             the step is over: call Next()
  absl::Status ChooseRows(size_t variable, std::vector<int64_t> ids);
  // The chosen rows, ascending, each once. Empty as value() is, and for a
  // variable that is no table.
  absl::Span<const int64_t> rows(size_t variable) const;
  // Must be called after kRows, once rows are chosen; a table without a
  // ChooseRows() has no rows in this step. Next() then returns kStep, or
  // another step if this one is over.
  //
  //   kFailedPrecondition  Next() has not returned kRows, or Pull() was called
  //                        for this step before
  //   kAborted             the step is over: call Next()
  absl::Status Pull();

  // After kStep: waits for the values of rows that ChooseRows() has replaced.
  // The values of variables that are no tables stay as they are.
  //
  //   kFailedPrecondition  no step is open, or Ready() or Absent() was called
  //                        in it
  //   kAborted             the step is over: call Next()
  absl::Status PullRows();

  // The errors of the calls below:
  //   kAborted             the pass is not needed any more: call Next()
  //   kFailedPrecondition  no step is open: Next() has not returned kStep, or
  //                        Finish() was called; or, of those that hand in a
  //                        gradient, PullRows() has not followed ChooseRows(),
  //                        or BeginGradients() must be called

  // Hands in gradient(variable), which must be final. It is sent once those of
  // all variables with larger indices are ready: all workers must send in one
  // order, whatever order they compute in. So the first layer's variables
  // should have the smallest indices.
  //
  //   kInvalidArgument     there is no such variable
  //   kFailedPrecondition  also: Ready() or Absent() was called for it already
  absl::Status Ready(size_t variable);
  // Must be called in place of Ready() if this pass has no gradient for the
  // variable. Fills gradient(variable) with zeros. In strict mode nothing is
  // sent, and the gradient counts as zeros in the mean; if no pass of the step
  // has a gradient for the variable, its value and its slots stay as they are.
  // In compatible mode it is a gradient of zeros. Errors as Ready().
  absl::Status Absent(size_t variable);
  // Returns kAborted if the step is over without this pass. Should be called
  // between layers of a long computation: a backup can stop early.
  absl::Status CheckWanted();
  // Marks the time in which the program waits for the data of the pass; traces
  // show it as reading. Must be called in pairs.
  void BeginReading();
  void EndReading();
  // Hands in the pass. Calls Absent() for all variables that are not ready.
  // `loss` is the mean over `examples`, for the status; NaN: there is none.
  //
  //   kInvalidArgument  `examples` is negative, or more than 2^31 - 1
  absl::Status Finish(double loss, int64_t examples);

  // Returns the indices, below `num_examples`, of this worker's examples in a
  // batch. A batch has the same examples in every call, also after a restart;
  // with `work: SHARED` it has the same on all workers.
  //
  // A program may draw from several sets, with another `num_examples` for each;
  // the schedules of four are kept. The job's epochs are those of the first set
  // that this process has asked for; the others begin anew without end. If they
  // are over before a step's batch, Next() returns kEnded in place of that
  // step.
  //
  //   kInvalidArgument  the job has no batch_size, or `num_examples` is less
  //                     than one batch per worker
  //   kOutOfRange       the job's epochs are over
  absl::StatusOr<std::vector<int64_t>> Examples(int64_t num_examples,
                                                int64_t batch);
  // Ends this worker's part in the job: there is no input for the step at hand,
  // nor for a later one. Must be called if Examples() returns kOutOfRange for
  // the batch of the step, as it does in a process that starts after the job's
  // epochs. Calls for the step then return kAborted, and Next() kEnded. The job
  // ends when the input of its workers has. A job without `data.epochs` takes
  // this for a stop of the worker.
  void EndInput();

  // Shows a figure in the job's status, in place of an earlier one of the same
  // name.
  //
  //   kInvalidArgument  the name is not valid, the value is not finite, or
  //                     there are more than 16 names
  absl::Status Report(const NamedFigure& figure);

  // Leaves the job in good order. In an elastic job the worker finishes its
  // pass first, unless that takes more than 10 s or RequestStop() is called
  // again, and its mirror follows; in others it leaves at once. If
  // carries_job(), the job stops, since it cannot go on without this process.
  void RequestStop(const std::string& reason);
  // Leaves the job at once. Must be called if the program has a fault that a
  // restart would not cure. If too few workers are left for a step, the job
  // fails with `reason`; without this call, the job would wait for the worker
  // until its lease expires. If carries_job(), a job that could go on without
  // the worker is stopped with `reason`.
  void Fail(const std::string& reason);
  // Leaves the job at once, for the reason "the program has ended"; no effect
  // if the job has ended. In other respects as RequestStop(). Must be called if
  // another thread may be in a call of this session, before the destructor: the
  // call returns soon, and later ones return kAborted or kEnded.
  void Leave();

 private:
  struct Parts;

  explicit Session(std::unique_ptr<Parts> parts);
  // kFailedPrecondition in a child made by fork().
  absl::Status CheckProcess() const;
  // Returns the errors of ChooseRows() that do not depend on its `ids`.
  absl::Status CheckRows(size_t variable) const;
  // Ready() and Absent().
  absl::Status HandIn(size_t variable, bool absent);

  std::unique_ptr<Parts> parts_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_SESSION_H_
