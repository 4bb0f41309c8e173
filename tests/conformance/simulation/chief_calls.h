#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_CHIEF_CALLS_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_CHIEF_CALLS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "chief/servers/shard_calls.h"
#include "tests/conformance/simulation/job.h"
#include "tests/conformance/simulation/server_process.h"
#include "tests/conformance/simulation/waiting.h"

namespace lockstep::simulation {

// ChiefCalls is one server as a chief sees it: ShardControlClient, over the
// simulated network. Calls wait in the fiber that was given last.
class ChiefCalls final : public chief::ShardCalls {
 public:
  ChiefCalls(Job& job, Waiting& waiting, uint64_t incarnation, int server)
      : job_(job),
        waiting_(&waiting),
        incarnation_(incarnation),
        server_(server) {}

  void set_waiting(Waiting& waiting) { waiting_ = &waiting; }
  int place() const { return job_.server_place(server_); }
  // The chief, as servers hear of it.
  server::ChiefCommands::Chief Self() const { return Self(epoch_); }
  server::ChiefCommands::Chief Self(uint64_t epoch) const {
    return {job_.id, epoch, incarnation_};
  }

  absl::StatusOr<uint64_t> TakeEpoch(uint64_t newer_than) override {
    return CallUntilUp<uint64_t>(
        [chief = Self(), newer_than](ServerProcess& ps) {
          return ps.TakeEpoch(chief, newer_than);
        });
  }
  void set_epoch(uint64_t epoch) override { epoch_ = epoch; }
  void set_incarnation(uint64_t incarnation) override {
    incarnation_ = incarnation;
  }

  absl::StatusOr<Created> CreateShard(const JobConfig&, const Plan& plan, int,
                                      State state) override {
    const bool discard = state == State::kDiscard;
    absl::StatusOr<chief::ServerReport> report =
        CallUntilUp<chief::ServerReport>(
            [chief = Self(), parts = plan.parts, discard](ServerProcess& ps) {
              return ps.CreateShard(chief, parts, discard);
            });
    if (!report.ok()) return report.status();
    if (server_ > 0 && job_.Has(PlantedBug::kReturnedMirrorKeepsItsStep)) {
      report->opened_epoch = std::numeric_limits<uint64_t>::max();
    }
    return Created{std::nullopt,
                   std::vector<std::vector<std::string>>(job_.variables.size(),
                                                         {"Momentum"}),
                   {},
                   *report};
  }
  absl::Status Activate(const Opening& opening) override {
    return CallUntilUp<bool>([chief = Self(), opening](ServerProcess& ps) {
             return ps.Activate(chief, opening);
           })
        .status();
  }
  absl::Status CommitAndWait(int64_t step, int64_t attempt) override {
    return Call<int64_t>([chief = Self(), step, attempt](ServerProcess& ps) {
             return ps.Commit(chief, step, attempt);
           })
        .status();
  }
  absl::StatusOr<Expired> ExpireWorker(int worker, uint64_t incarnation,
                                       const std::string&, int64_t step,
                                       int64_t attempt) override {
    return Call<Expired>([=, chief = Self()](ServerProcess& ps) {
      return ps.ExpireWorker(chief, worker, incarnation, step, attempt);
    });
  }
  absl::StatusOr<chief::ShardSnapshot> BeginSnapshot(
      int64_t /*step*/) override {
    const auto begun =
        Call<chief::ShardSnapshot>([chief = Self()](ServerProcess& ps) {
          return ps.BeginSnapshot(chief);
        });
    if (begun.ok()) snapshot_step_ = begun->global_step;
    return begun;
  }
  absl::Status EndSnapshot() override { return absl::OkStatus(); }

  // All parts at once, in place of what ShardAccess moves piece by piece.
  absl::StatusOr<std::vector<PartState>> ReadAll(Waiting& waiting,
                                                 uint64_t epoch) {
    return waiting.Call<std::vector<PartState>>(
        place(),
        Serve<std::vector<PartState>>(
            [chief = Self(epoch), step = snapshot_step_](ServerProcess& ps) {
              return ps.ReadSnapshot(chief, step);
            }));
  }
  absl::Status WriteAll(const std::vector<PartState>& parts) {
    return Call<bool>([chief = Self(), parts](ServerProcess& ps) {
             return ps.WriteParts(chief, parts);
           })
        .status();
  }
  absl::Status ReadSnapshot(const chief::ElementRange&,
                            absl::Span<char>) override {
    return absl::UnimplementedError("ReadAll");
  }
  absl::Status WriteParts(const chief::ElementRange&,
                          absl::Span<const char>) override {
    return absl::UnimplementedError("WriteAll");
  }
  absl::Status ReadKeys(int, int64_t, absl::Span<int64_t>) override {
    return absl::UnimplementedError("no table grows");
  }
  absl::Status WriteRows(int, int, absl::Span<const int64_t>,
                         absl::Span<const char>) override {
    return absl::UnimplementedError("no table grows");
  }

 private:
  template <typename Answer>
  using Asked = std::function<absl::StatusOr<Answer>(ServerProcess&)>;

  template <typename Answer>
  std::function<void(World::Reply<Answer>)> Serve(Asked<Answer> asked) {
    return [&job = job_, server = server_,
            asked = std::move(asked)](const World::Reply<Answer>& reply) {
      reply(asked(*job.servers[server]));
    };
  }
  template <typename Answer>
  absl::StatusOr<Answer> Call(Asked<Answer> asked) {
    return waiting_->Call<Answer>(place(), Serve<Answer>(std::move(asked)));
  }
  // As ShardControlClient's setup calls.
  template <typename Answer>
  absl::StatusOr<Answer> CallUntilUp(const Asked<Answer>& asked) {
    const absl::Time began = job_.world.Now();
    while (true) {
      absl::StatusOr<Answer> answer = Call<Answer>(asked);
      if (!absl::IsUnavailable(answer.status()) ||
          job_.world.Now() - began >= absl::Seconds(1)) {
        return answer;
      }
      waiting_->Sleep(absl::Milliseconds(100));
    }
  }

  Job& job_;
  Waiting* waiting_;
  uint64_t incarnation_;
  const int server_;
  uint64_t epoch_ = 0;
  int64_t snapshot_step_ = -1;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_CHIEF_CALLS_H_
