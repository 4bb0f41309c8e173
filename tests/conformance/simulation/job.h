#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_JOB_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_JOB_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/operators/status_table.h"
#include "common/cluster/task_id.h"
#include "common/job/job_config.h"
#include "common/plan/plan.h"
#include "common/plan/variable_spec.h"
#include "tests/conformance/simulation/compatible_promises.h"
#include "tests/conformance/simulation/promises.h"
#include "tests/conformance/simulation/world.h"

namespace lockstep::simulation {

// A mistake that is made on purpose, to see that it is found. They are in what
// surrounds the product's classes here, not in them.
enum class PlantedBug {
  kNone,
  kTokenBeforeCommit,        // P1: as soon as ps 0 is prepared
  kStaleGradientCounts,      // P2: is taken for one of the step at hand
  kRepeatedPushCounts,       // P3: as another worker's
  kPullOfHalfAnUpdate,       // P4: one part is of the prepared step
  kValuesAreNotAwaited,      // P4: a pass that begins early reads what is there
  kOldChiefIsObeyed,         // P5: servers do not look at epochs
  kInitialisedAnew,          // P5: a restarted server forgets its values
  kServesBeforeOpen,         // P5: a restarted server answers at once
  kDeadWorkerKeepsItsPlace,  // P6: it is not taken out of the step
  kMembersAreNotTold,        // P7: that the job is over
  kNoLastCheckpoint,         // P7: the last one is not written
  kDataFollowsPasses,        // P11: a restarted worker begins its data anew
  kResumeIsLost,             // P6: a paused job stays so
  kRateOfOneServerStays,     // P11: a changed rate reaches ps 0 alone
  kSetKeepsItsSize,          // P11: ps 0 takes as many gradients as before
  kSumsOfOldSettingsCount,   // P11: a step goes on under changed settings
  kLeaverStaysAMember,       // P6: of an elastic job
  kStopWithoutCheckpoint,    // P7: a job that is stopped saves nothing
  kWaitsForEver,             // P6: max_wait does not count
  kFullTableIsNotTold,       // P6: the worker that finds out is only gone
  kEndOfInputIsForgotten,    // P6: by a chief that is started again
  kNormIsNotAwaited,         // P11: a server takes that of an attempt before
  kNormOfOneServer,          // P11: the chief does not add up
  kAbsentIsZero,             // P11: a worker sends zeros in place of nothing
  kOldMeanCounts,            // P3: a mirror takes a late mean for a newer one
  kCopyLacksSlots,           // P11: of a mirror's state the values are copied
  kCopiesAreGivenUp,         // P5: all go back, though one copy is left
  kWorkersWordCommits,       // P1: a server commits what a worker asks for
  kDataFollowsWorker,        // P12: each worker computes numbers of its own
  kGradientOfAnotherNumber,  // P12: a repeated number is taken for the next
  kDoneBeforePushed,         // P6: a number, while its push is under way
  kReadersAreNotCounted,     // P4: values are written to while they are read
  kOldCopyCounts,            // P4: workers do not look whether it was too late
  kHalfAStepIsKept,          // P5: compatible mode: of a killed server
  // P11: a mirror without which the job has gone on hides that.
  kReturnedMirrorKeepsItsStep,
  kBrokenMirrorIsAwaited,  // P6: though it cannot open its state
};

// How a schedule may end besides with the last step.
enum class Ending {
  kLastStep,
  kStop,       // an operator stops the job
  kFullTable,  // every worker finds a table full at some step
  kInput,      // each worker's data ends at some step
  kNoWorkers,  // all workers are lost for good, until max_wait ends the job
};

struct Options {
  int replicas_to_aggregate = 2;
  int total_num_replicas = 2;
  std::vector<int> parts = {2, 1};  // by server
  int64_t steps = 4;                // then training ends
  int64_t checkpoint_every = 2;     // steps
  // Workers may leave and join. One more may join, unless they have mirrors;
  // then mirrors come and go with their workers.
  bool elastic = false;
  // Operators change the job in so many of 1000 disturbances.
  int steered = 200;
  std::optional<Ending> ending = std::nullopt;  // otherwise it is drawn
  PlantedBug bug = PlantedBug::kNone;
  // A member of a step whose gradient has not come for so long is replaced, if
  // there are backups.
  absl::Duration stall_timeout = JobConfig().lease;
  // Servers limit the norm of the mean gradients of all of them.
  bool limits_mean = false;
  // Passes have no gradient of some parts.
  bool sparse = false;
  // Each worker has a mirror; as many servers as workers. `parts` are those
  // that each sums.
  bool mirrored = false;
  // Workers also ask servers for the step that they have pushed to, before any
  // token says that it is committed.
  bool hasty = false;
  // Work is shared: replicas_to_aggregate micro-batches a step.
  bool shared = false;
  SyncMode mode = SyncMode::kStrict;
  int initial_tokens = 0;  // of compatible mode
  // By worker: how long a pass takes. Empty: next to no time, in strict mode
  // now and then some milliseconds.
  std::vector<absl::Duration> pass_times = {};
  // Workers copy values from the servers' memory.
  bool shared_memory = false;
};

class ChiefProcess;
class ServerProcess;

// How often something rare has happened.
struct Tally {
  int64_t redone = 0;       // ps task 0 told a worker that its step begins anew
  int64_t replaced = 0;     // a member of a step, on a server
  int64_t held_up = 0;      // an update had to wait for readers
  int64_t late_copies = 0;  // a value was overwritten before it was copied
  int64_t left_out = 0;     // a mirror that could not open its state
  int64_t postponed = 0;    // a pull or push waited for a commit
  int64_t given_up = 0;     // a push was not answered though training was over

  Tally& operator+=(const Tally& other) {
    redone += other.redone;
    replaced += other.replaced;
    held_up += other.held_up;
    late_copies += other.late_copies;
    left_out += other.left_out;
    postponed += other.postponed;
    given_up += other.given_up;
    return *this;
  }
};

// Job is the state that the processes of a simulated job share: the cluster,
// and everything that outlives a process.
struct Job {
  struct Checkpoint {
    std::vector<std::vector<PartState>> servers;
    std::map<std::string, double> settings;  // as in a manifest
  };

  Job(const Options& options, World& world);

  int num_servers() const { return static_cast<int>(options.parts.size()); }
  int chief_place() const { return 0; }
  int server_place(int server) const { return 1 + server; }
  int worker_place(int worker) const { return 1 + num_servers() + worker; }
  // True if mirrors come and go with their workers.
  bool has_elastic_mirrors() const {
    return options.elastic && options.mirrored;
  }
  int num_worker_places() const {
    // A worker beyond the cluster would have no mirror.
    const bool one_more = options.elastic && !options.mirrored;
    return options.total_num_replicas + (one_more ? 1 : 0);
  }
  // Where servers have their state: see memory_mapped_file.cc.
  std::string state_dir() const {
    return options.shared_memory ? "/shared" : "/";
  }
  TaskId TaskAt(int place) const;
  // How many passes of a step are a worker's, or of shared work anyone's.
  int SharesOf(int worker) const;
  bool Has(PlantedBug bug) const { return options.bug == bug; }
  bool is_compatible() const { return options.mode == SyncMode::kCompatible; }
  void Trace(const std::function<std::string()>& line) const {
    if (world.tracing) world.Trace(line());
  }

  const Options options;
  World& world;
  Promises promises;
  CompatiblePromises compatible;
  JobConfig config;
  std::vector<VariableSpec> variables;
  Plan plan;
  std::string id = "job";
  uint64_t last_incarnation = 0;
  std::map<int64_t, Checkpoint> checkpoints;  // by step
  Tally tally;
  // How often checkpoints in the making have been removed.
  int64_t unfinished_removed = 0;

  // The processes at those places; null where there is none.
  ChiefProcess* chief = nullptr;
  // Those that were replaced while they hung, too, by number.
  std::map<int, ChiefProcess*> chiefs;
  // In a call to a chief: the one that serves it.
  ChiefProcess& ServingChief() const { return *chiefs.at(world.serving()); }
  std::vector<ServerProcess*> servers;
  // The chief has said how the job ended.
  bool done = false;
  JobState ended_as = JobState::kStarting;
  std::string ended_because;
  // The events that may have ended it.
  bool stop_wanted = false;
  bool workers_lost = false;
  int64_t full_at_step = -1;  // -1: no table is full
  // By worker: the step at which it has used up its data.
  std::map<int, int64_t> input_ends = {};
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_JOB_H_
