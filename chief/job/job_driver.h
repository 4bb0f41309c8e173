#ifndef LOCKSTEP_CHIEF_JOB_JOB_DRIVER_H_
#define LOCKSTEP_CHIEF_JOB_JOB_DRIVER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "chief/events/job_actions.h"
#include "chief/events/job_events.h"
#include "chief/job/checkpoint_driver.h"
#include "chief/job/farewell.h"
#include "chief/job/gathering.h"
#include "chief/job/job_context.h"
#include "chief/job/member_deaths.h"
#include "chief/job/saving.h"
#include "chief/job/score_wait.h"
#include "chief/job/servers_wait.h"
#include "chief/job/stand_still.h"
#include "chief/job/training.h"
#include "chief/members/membership_table.h"
#include "chief/steps/step_driver.h"
#include "common/job/beginning.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// JobDriver makes all decisions of a chief for one job, from its first member
// to its last checkpoint. Events go in, actions come out; the caller must carry
// them out, in their order, before the next event. It has no clock and never
// blocks: the time is an argument, and Tick reports the time while nothing else
// happens.
//
//  starting -> gathering -> together <-> round -> training -> saving -> scoring
//                              ^                   |   ^        |         |
//                              `-- servers away ---+---+--------'         |
//                              `-- new settings ---'   `-- steps lost     |
//                                                     farewell <----------'
//                                                        `-> over
//
// A failure in any state leads to farewell, and a newer chief to over.
//
// Threads: not thread-safe.
// Borrows: the job and the members, whose deaths it handles.
class JobDriver {
 public:
  struct Options {
    int num_servers = 0;
    Beginning beginning = {};
    bool has_evaluator = false;  // and it can score
  };
  // The time that members need to find a chief that was started again.
  static constexpr absl::Duration kTakeOver = absl::Seconds(2);

  JobDriver(const JobConfig& job, const Options& options,
            MembershipTable& members, absl::Time now);
  JobDriver(const JobDriver&) = delete;
  JobDriver& operator=(const JobDriver&) = delete;

  // Handles an event. Returns its effects, in the order in which the caller
  // must carry them out.
  JobActions On(const JobEvent& event, absl::Time now);
  // The time at which a Tick must come at the latest.
  absl::Time next() const;

  // True if SettingsWanted counts; and the settings that were wanted last.
  bool TakesSettings() const { return takes_settings_; }
  const RunSettings& wanted_settings() const {
    return context_.settings.wanted();
  }

  // The answers to a round while Recover is carried out; see RecoverySource.
  // The caller must carry out the actions at once.
  const RunSettings& settings() const { return context_.settings.now(); }
  bool BeginsAnew() const { return options_.beginning.anew(); }
  void OnFound(absl::Span<const ServerReport> reports);
  std::vector<int> Servers() const { return context_.servers.Needed(); }
  void OnStateElsewhere() { context_.servers.OnStateElsewhere(); }
  MemberDeaths& deaths() { return deaths_; }  // of this driver's members
  std::vector<int> EndedInput() const { return deaths_.EndedInput(); }
  bool OnResume(absl::Span<const ServerReport> reports, bool first);
  // Reports the work of servers in a round.
  //
  //   kCancelled  the job must stop
  absl::Status OnWorking(const std::string& what, absl::Time now,
                         JobActions& out);
  // `latest` is the step of the newest checkpoint, -1 if there is none. Returns
  // the time until which the round must wait.
  absl::Time OnStartFrom(const RecoveryPlan& plan, bool first, int64_t latest,
                         JobActions& out);
  // Adopts the settings of the checkpoint from which the job continues.
  void OnRestore(const std::map<std::string, double>& manifest,
                 JobActions& out);

  // The last step that was seen committed; 0 before the servers were open.
  int64_t step() const { return steps_.step(); }
  // True if the servers have been open.
  bool opened() const { return steps_.opened(); }
  int num_workers() const { return context_.settings.num_workers(); }
  // The settings in the form that OnRestore() reads.
  std::map<std::string, double> ManifestSettings() const {
    return context_.settings.ForManifest();
  }

 private:
  enum class Phase {
    kStarting,
    kGathering,  // until all servers and a model have come
    kTogether,   // until all servers have come
    kRound,      // servers are brought to one step
    kTraining,
    kSaving,
    kScoring,
    kFarewell,
    kOver
  };
  // The reason for which servers are brought together.
  enum class Cause {
    kSetUp,
    kServerAway,
    kMirrorBack,  // one that was given up
    kSettings,
    kEndOfInput,
    kSaving
  };

  void Handle(const Started& event);
  void Handle(const ModelDescribed& event);
  void Handle(const TakeAnswered& event);
  void Handle(const CommitAnswered& event);
  void Handle(const ExpireAnswered& event);
  void Handle(const ReplaceAnswered& event);
  void Handle(const TokensClosed& event);
  void Handle(const SnapshotBegun& event);
  void Handle(const SnapshotDone& event);
  void Handle(const SavedChecked& event);
  void Handle(const EndFound& event);
  void Handle(const RecoveryDone& event);
  void Handle(const SettingsWanted& event);
  void Handle(const CheckpointWanted& event);
  void Handle(const StopWanted& event);
  void Handle(const Scored& event) { scored_ = event.step; }
  void Handle(const Tick& event);

  void RunTick();
  void Follow(Training::Turn turn);
  void Follow(Saving::Turn turn);

  void Gather();
  void BringTogether(Cause cause);
  // Begins a round if all servers that take part are alive.
  void BeginRound();
  void TogetherFailed(const absl::Status& status);
  void Opened(const RoundOutcome& outcome);
  void SetUp();
  // After the death of a server, or the return of a mirror.
  void GoOnAfterDeath();
  // Steps need a mirror that was given up: the job ends if it was stopped, or
  // waits for the mirror.
  void DoWithoutSteps();
  void ApplySettings();
  void GoOnWithSettings();
  void LookForEndSince(absl::Time since);
  void EndTraining(const absl::Status& status);
  void EndWithInput();
  // Opens the job again that was about to end: its last steps are lost.
  void OpenAgain();
  void EndSaving(const absl::Status& status);
  void Score();
  void End(const absl::Status& status);
  void SayFarewell();
  void GiveWay(const absl::Status& why);

  const Options options_;
  const absl::Time started_;
  JobContext context_;
  Phase phase_ = Phase::kStarting;
  absl::Time since_;  // the last bringing together began
  absl::Time last_tick_;
  bool takes_settings_ = false;

  Gathering gathering_;
  StepDriver steps_;
  CheckpointDriver checkpoints_;
  MemberDeaths deaths_;
  ServersWait servers_wait_;
  Training training_;
  Saving saving_;
  std::optional<ScoreWait> score_wait_;
  Farewell farewell_;

  // The reason for which servers were brought together last, and the settings
  // before.
  Cause cause_ = Cause::kSetUp;
  StandStill stand_still_;
  RunSettings settings_before_;
  uint64_t epoch_ = 0;

  int64_t scored_ = -1;
  std::string why_done_;  // if it comes to that
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_JOB_DRIVER_H_
