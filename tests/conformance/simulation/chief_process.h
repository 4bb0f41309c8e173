#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_CHIEF_PROCESS_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_CHIEF_PROCESS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "chief/events/job_actions.h"
#include "chief/events/job_events.h"
#include "chief/job/job_driver.h"
#include "chief/members/membership_table.h"
#include "chief/operators/member_answers.h"
#include "chief/operators/member_job.h"
#include "chief/operators/settings_table.h"
#include "chief/operators/status_table.h"
#include "chief/recovery/recovery_round.h"
#include "chief/recovery/shard_group.h"
#include "common/membership/membership.h"
#include "common/plan/plan.h"
#include "common/wire/sender.h"
#include "tests/conformance/simulation/chief_calls.h"
#include "tests/conformance/simulation/job.h"
#include "tests/conformance/simulation/process.h"
#include "tests/conformance/simulation/waiting.h"

namespace lockstep::simulation {

// ChiefProcess is a chief: the product's JobDriver, MembershipTable,
// MemberAnswers and RecoveryRound. What Chief does with threads and over the
// wire, it does in fibers and over the simulated network: it brings the driver
// events and carries out its actions.
class ChiefProcess final : public Process, private chief::RecoverySource {
 public:
  explicit ChiefProcess(Job& job);
  ~ChiefProcess() override;

  // For members.
  // `again`: the same process has been a member before.
  absl::StatusOr<chief::MemberAnswers::Registered> Register(
      const TaskId& task, uint64_t incarnation, bool again);
  // `workers`: of an elastic job, as a registration told them to the member.
  absl::StatusOr<Membership::Answer> Heartbeat(const TaskId& task,
                                               uint64_t incarnation,
                                               const std::vector<int>& workers);
  absl::Status Leave(const TaskId& task, uint64_t incarnation,
                     LeaveCause cause);
  bool HasPlan() const { return status_table_.plan().has_value(); }
  // The answer to a worker that asks for the plan.
  struct PlanAnswer {
    Plan plan;
    int64_t global_step = 0;
  };
  // Returns nullopt until there is a plan.
  absl::StatusOr<std::optional<PlanAnswer>> GetPlan(const TaskId& task,
                                                    uint64_t incarnation);

  // For operators.
  chief::SettingsTable& settings_table() { return settings_table_; }
  RunSettings in_effect() const {
    return status_table_.Get(job_.world.Now()).settings;
  }
  bool IsAlive(const TaskId& task) const {
    return members_.Get(task).state == chief::MembershipTable::State::kAlive;
  }
  // Whether the job needs the server.
  bool TakesPart(int server) const;
  // Whether its last process has left the job.
  bool HasLeft(const TaskId& task) const {
    return members_.Get(task).state == chief::MembershipTable::State::kLeft;
  }
  void RequestStop();

  // The things that it waits for, for a report.
  std::string WaitsFor() const;

 private:
  // As a member does that is asked for the model, in the same call.
  absl::Status Describe(const Sender& sender);
  bool KnowsModel(const TaskId& task) const;

  void Main();
  chief::JobEvent NextEvent();
  void Post(const chief::JobEvent& event);
  void Carry(const chief::JobActions& actions);
  template <typename Answer, typename Serve, typename Done>
  void Ask(int server, Serve serve, Done done);

  void Do(const chief::Take& take);
  void Do(const chief::Commit& commit);
  void Do(const chief::TellCommit& tell);
  void Do(const chief::Expire& expire);
  void Do(const chief::Replace& replace);
  void Do(const chief::CloseTokens& close);
  void Do(const chief::BeginSnapshot& begin);
  void Do(const chief::CheckSaved& check);
  void Do(const chief::LookForEnd& look);
  void Do(const chief::Recover& recover);
  void Do(const chief::OpenSettings& open) {
    settings_table_.Open(open.settings);
  }
  void Do(const chief::CloseSettings& close) {
    settings_table_.Close(close.reason, close.over);
  }
  void Do(const chief::TakeOut& out);
  void Do(const chief::Tuned& tuned) { settings_table_.Tune(tuned.replicas); }
  void Do(const chief::Say& say);
  void Do(const chief::SumUp& /*sum_up*/) {}
  void Do(const chief::JobReport& report);
  void Do(const chief::Finish& finish);
  // In a fiber of its own.
  void WriteCheckpoint(const chief::BeginSnapshot& begin);
  bool CopyServers(int64_t step);

  absl::StatusOr<int64_t> LatestStep() const override;
  absl::StatusOr<std::optional<Restored>> Restore(
      const chief::StateMap& map) override;
  void OnFound(absl::Span<const chief::ServerReport> reports) override {
    if (!job_.Has(PlantedBug::kEndOfInputIsForgotten)) driver_.OnFound(reports);
  }
  std::vector<int> EndedInput() const override { return driver_.EndedInput(); }
  bool OnResume(absl::Span<const chief::ServerReport> reports,
                bool first) override {
    return driver_.OnResume(reports, first) &&
           !job_.Has(PlantedBug::kSumsOfOldSettingsCount);
  }
  RunSettings settings() const override { return driver_.settings(); }
  absl::Status OnWorking(const std::string& what) override;
  void OnEpoch(uint64_t epoch) override {
    job_.promises.OnRound(epoch, group_.used());
  }
  // The round goes on with these alone.
  std::vector<int> Servers() const override {
    job_.promises.OnRound(group_.epoch(), driver_.Servers());
    return driver_.Servers();
  }
  void OnStateElsewhere() override {
    job_.promises.OnStateElsewhere();
    driver_.OnStateElsewhere();
  }
  void OnLeftOut(int server, const absl::Status& why) override;
  absl::Status OnStartFrom(const chief::RecoveryPlan& plan,
                           bool first) override;

  // One that no other process has.
  uint64_t Incarnation(uint64_t time) const;

  Job& job_;
  chief::MembershipTable members_;
  std::vector<std::unique_ptr<ChiefCalls>> calls_;
  // Copies a mirror's state in one message.
  class Group final : public chief::ShardGroup {
   public:
    Group(Job& job, Waiting& waiting, Draw draw)
        : ShardGroup(std::move(draw)), job_(job), waiting_(waiting) {}

   private:
    absl::Status Transfer(const chief::StateMap& map, chief::ShardCalls& from,
                          const std::vector<chief::ShardCalls*>& to,
                          const chief::OnTransferred& on_transferred) override;

    Job& job_;
    Waiting& waiting_;
  };

  Group group_;
  chief::RecoveryRound round_{job_.config, group_, members_, *this, job_.world};
  chief::StatusTable status_table_;
  chief::SettingsTable settings_table_;
  const JobConfig config_;  // as this chief knows it
  chief::MemberAnswers answers_;
  chief::JobDriver driver_;
  bool told_model_ = false;
  Plan plan_;  // as the last round has opened the servers
  bool finished_ = false;
  std::optional<absl::Status> stop_;
  std::deque<chief::JobEvent> events_;
  Waiting waiting_;
  std::unique_ptr<Waiting> saver_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_CHIEF_PROCESS_H_
