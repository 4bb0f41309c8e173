// Jobs recorded from TensorFlow, replayed through the services of two servers
// over gRPC: every value, token and wait after every operation. Chief and
// workers are played by this test with ordinary stubs and the chief's loop.

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "chief/steps/sync_loop.h"
#include "common/job/codec/job_config_codec.h"
#include "common/wire/wire_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/compatible/compatible_engine.h"
#include "server/step/compatible/compatible_gate.h"
#include "server/update/slots.h"
#include "tests/golden/gradient_json.h"
#include "tests/golden/optimizer_json.h"
#include "tests/golden/report.h"
#include "tests/golden/trace.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/integration/server/rpc/trace_scope.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using golden::Json;
using golden::ReadInt;

constexpr int kServers = 2;

std::vector<int> AllServers() { return {0, 1}; }

template <typename Future>
bool IsReady(const Future& future) {
  return future.wait_for(std::chrono::milliseconds(1)) ==
         std::future_status::ready;
}

// A worker, and its wait for a token.
struct Worker {
  uint64_t incarnation = 1;
  int64_t passes = 0;
  int64_t local_step = 0;
  std::unique_ptr<grpc::ClientContext> context;
  std::future<absl::StatusOr<v1::TakeTokenResponse>> token;

  bool waits() const { return token.valid(); }
};

using TakeFuture = std::future<absl::StatusOr<v1::TakeAndApplyResponse>>;

class ServedTrace {
 public:
  ServedTrace(const Json& scenario, golden::Report& report)
      : scenario_(scenario),
        report_(report),
        dtype_(golden::ReadDType(scenario)),
        workers_(ReadInt(scenario.at("workers"))) {
    for (int i = 0; i < kServers; ++i) {
      servers_.push_back(
          std::make_unique<ServedShard>(i, SyncMode::kCompatible));
    }
  }
  // Ends the calls that still wait.
  ~ServedTrace() {
    for (const auto& server : servers_) server->AnswerWaits();
    for (const Worker& worker : workers_) {
      if (worker.waits()) worker.token.wait();
    }
    for (const auto* takes : {&takes_, &withdrawn_}) {
      for (const TakeFuture& take : *takes) {
        if (take.valid()) take.wait();
      }
    }
  }

  // Carries out the first operations.
  void Run(size_t operations) {
    const Json& ops = scenario_.at("ops");
    if (ops.at(0).at("op") == "start") return RefuseStart(ops[0]);
    for (int i = 0; i < kServers; ++i) ASSERT_NO_FATAL_FAILURE(Create(i));
    for (int i = kServers - 1; i >= 0; --i) {
      ASSERT_NO_FATAL_FAILURE(Activate(i));
    }
    for (size_t i = 0; i < operations; ++i) {
      const std::string kind = ops[i].at("op");
      report_.Begin(i, kind);
      if (kind == "state") FileTakes();
      if (kind == "pass") Pass(ops[i]);
      if (kind == "restart_worker")
        Restart(ReadInt(ops[i].at("worker")), ops[i]);
      if (kind == "stop_chief") Kill(0, ops[i]);
      if (kind == "reinit_chief") StartChiefAgain(ops[i]);
      Settle(ops[i].at("state"));
      Compare(ops[i].at("state"));
      if (!report_.differences().empty()) return;
      if (::testing::Test::HasFailure()) return;
    }
  }

 private:
  using Control = v1::ShardControlService::Stub;

  JobConfig Job() const {
    JobConfig job = servers_[0]->Job();
    const auto count = [&](const char* field) {
      return static_cast<int>(ReadInt(scenario_.at(field)));
    };
    const golden::OptimizerRecord record =
        golden::ReadOptimizer(scenario_.at("optimizer").at("name"),
                              scenario_.at("optimizer").at("hyper"));
    job.optimizer = record.config;
    job.learning_rate.base = record.learning_rate;
    job.replicas_to_aggregate = count("replicas_to_aggregate");
    job.total_num_replicas = count("total_num_replicas");
    job.initial_tokens = count("num_tokens");
    if (job.initial_tokens == -1) {
      job.initial_tokens = job.replicas_to_aggregate;
    }
    for (const Json& variable : scenario_.at("variables")) {
      if (!variable.value("no_gradient", false)) continue;
      job.untrained.push_back(variable.at("name"));
    }
    const Json& decay = scenario_.at("moving_average");
    if (!decay.is_null()) job.moving_average.decay = golden::ReadNumber(decay);
    return job;
  }

  size_t num_variables() const { return scenario_.at("variables").size(); }
  // Variables are placed in turn, each is one part.
  static int ServerOf(size_t v) { return static_cast<int>(v) % kServers; }
  static int PartOf(size_t v) { return static_cast<int>(v) / kServers; }
  // Its gradients are rows: to the server it is a table, in one part.
  bool IsSparse(size_t v) const {
    return scenario_.at("variables")[v].at("sparse").get<bool>();
  }
  // Its gradient is always absent: it is untrained.
  bool IsTrained(size_t v) const {
    return !scenario_.at("variables")[v].value("no_gradient", false);
  }
  golden::Tensor Initial(size_t v) const {
    return golden::ReadTensor(dtype_,
                              scenario_.at("variables")[v].at("initial"));
  }

  // Also for a chief that starts again.
  void Create(int i) {
    ASSERT_NO_FATAL_FAILURE(TakeEpoch(i));
    ASSERT_OK(
        Call(servers_[i]->control(), &Control::CreateShard, Description(i)));
  }

  // TensorFlow refuses the job; so does a server.
  void RefuseStart(const Json& op) {
    report_.Begin(0, "start");
    ASSERT_NO_FATAL_FAILURE(TakeEpoch(0));
    const auto created =
        Call(servers_[0]->control(), &Control::CreateShard, Description(0));
    report_.Expect("status of the start", op.at("status"),
                   golden::StatusName(created.status()));
  }

  void TakeEpoch(int i) {
    ServedShard& server = *servers_[i];
    server.host().SetJobId(kJobId);
    v1::TakeEpochRequest epoch;
    *epoch.mutable_chief() = server.Chief();
    epoch.mutable_chief()->set_epoch(0);
    epoch.set_newer_than(server.Chief().epoch());
    auto taken = Call(server.control(), &Control::TakeEpoch, epoch);
    ASSERT_OK(taken);
    server.set_epoch(taken->epoch());
  }

  v1::CreateShardRequest Description(int i) const {
    v1::CreateShardRequest request;
    *request.mutable_chief() = servers_[i]->Chief();
    *request.mutable_job() = ToProto(Job());
    for (size_t v = 0; v < num_variables(); ++v) {
      const golden::Tensor initial = Initial(v);
      const std::string name = scenario_.at("variables")[v].at("name");
      *request.add_variables() =
          ToProto(VariableSpec{name,
                               initial.shape,
                               dtype_,
                               {},
                               IsSparse(v) ? RowCut::kDiv : RowCut::kNone});
      if (ServerOf(v) != i) continue;
      *request.add_parts() = ToProto(Part{
          static_cast<int>(v), 0, NumElements(initial.shape), i, PartOf(v)});
    }
    return request;
  }

  void Write(size_t v, int tensor) {
    ServedShard& server = *servers_[ServerOf(v)];
    v1::WritePartsRequest request;
    v1::WritePartsHeader& header = *request.mutable_header();
    *header.mutable_chief() = server.Chief();
    header.mutable_selector()->mutable_parts()->set_first_part(PartOf(v));
    header.mutable_selector()->mutable_parts()->set_num_parts(1);
    header.mutable_selector()->set_tensor(tensor);
    const golden::Tensor initial = Initial(v);
    request.set_payload(initial.values.data(), initial.values.size());
    ASSERT_OK(Call(server.control(), &Control::WriteParts, request));
  }

  void Activate(int i) {
    const int average = 1 + static_cast<int>(server::NumSlots(Job().optimizer));
    for (size_t v = 0; v < num_variables(); ++v) {
      if (ServerOf(v) != i) continue;
      ASSERT_NO_FATAL_FAILURE(Write(v, 0));
      if (Job().moving_average.decay == 0 || !IsTrained(v)) continue;
      ASSERT_NO_FATAL_FAILURE(Write(v, average));
    }
    v1::ActivateRequest request;
    *request.mutable_chief() = servers_[i]->Chief();
    ASSERT_OK(Call(servers_[i]->control(), &Control::Activate, request));
  }

  TakeFuture Take(int i) {
    return std::async(std::launch::async, [this, i, step = loop_.step()] {
      return Call(servers_[i]->control(), &Control::TakeAndApply,
                  servers_[i]->TakeRequest(step));
    });
  }

  // When two takes are filed, the server withdraws the first one; that proves
  // that the second one is there.
  void FileTakes() {
    loop_.Begin();
    takes_.clear();
    for (int i = 0; i < kServers; ++i) {
      TakeFuture one = Take(i);
      TakeFuture other = Take(i);
      while (!IsReady(one) && !IsReady(other)) {
      }
      if (IsReady(one)) std::swap(one, other);
      ASSERT_OK(other.get());
      takes_.push_back(std::move(one));
    }
  }

  // What the chief does when both servers are prepared.
  void FinishStep() {
    for (int i = 0; i < kServers; ++i) {
      auto taken = takes_[i].get();
      ASSERT_OK(taken);
      ASSERT_TRUE(taken->prepared());
      const auto actions = loop_.OnPrepared(i, loop_.step(), taken->attempt());
      ASSERT_EQ(actions.commit.has_value(), i + 1 == kServers);
    }
    const int64_t step = loop_.step() + 1;
    for (int i = 0; i < kServers; ++i) {
      ASSERT_OK(Call(servers_[i]->control(), &Control::Commit,
                     servers_[i]->CommitRequest(step, 0)));
    }
    loop_.OnCommitted(step);
    FileTakes();
  }

  void Pass(const Json& op) {
    const int64_t index = ReadInt(op.at("worker"));
    Worker& worker = workers_.at(index);
    ++worker.passes;
    for (size_t v = 0; v < num_variables(); ++v) {
      ASSERT_NO_FATAL_FAILURE(
          Push(static_cast<int>(index), v, op.at("gradients").at(v)));
    }
    v1::TakeTokenRequest request;
    *request.mutable_identity() =
        ServedShard::Worker(static_cast<int>(index), worker.incarnation);
    request.set_local_step(worker.local_step);
    request.set_pass(worker.passes);
    worker.context = std::make_unique<grpc::ClientContext>();
    worker.context->set_deadline(
        absl::ToChronoTime(absl::Now() + kCallTimeout));
    worker.token = std::async(std::launch::async,
                              [this, request, context = worker.context.get()]()
                                  -> absl::StatusOr<v1::TakeTokenResponse> {
                                v1::TakeTokenResponse response;
                                const grpc::Status status =
                                    servers_[0]->sync().TakeToken(
                                        context, request, &response);
                                if (!status.ok()) return FromGrpcStatus(status);
                                return response;
                              });
    // It is in the line, or has been served, before anything else is done.
    while (!IsReady(worker.token) && !IsInLine(static_cast<int>(index))) {
    }
  }

  void Push(int index, size_t v, const Json& gradient) {
    const Worker& worker = workers_[index];
    v1::PushRequest request;
    v1::PushHeader& header = *request.mutable_header();
    *header.mutable_identity() = ServedShard::Worker(index, worker.incarnation);
    header.mutable_parts()->set_first_part(PartOf(v));
    header.mutable_parts()->set_num_parts(1);
    header.set_local_step(worker.local_step);
    header.set_pass(worker.passes);
    golden::Tensor values;
    if (!IsTrained(v)) {
      if (IsSparse(v)) header.add_rows();
      if (!IsSparse(v)) values.values.resize(Initial(v).values.size());
    } else if (IsSparse(v)) {
      const golden::SparseRecord rows = golden::ReadSparse(dtype_, gradient);
      values = rows.values;
      header.add_rows()->mutable_ids()->Add(rows.indices.begin(),
                                            rows.indices.end());
    } else {
      values = golden::ReadTensor(dtype_, gradient);
    }
    request.set_payload(values.values.data(), values.values.size());
    ASSERT_OK(Call(servers_[ServerOf(v)]->parameters(),
                   &v1::ParameterService::Stub::Push, request));
  }

  bool IsInLine(int index) {
    const auto line = servers_[0]->host().shard().value()->gate();
    const auto waiting = line->WaitingWorkers();
    return std::any_of(waiting.begin(), waiting.end(),
                       [&](const auto& w) { return w.worker == index; });
  }

  // The worker's process is killed, and its successor begins with a free pass.
  void Restart(int64_t index, const Json& op) {
    ASSERT_NO_FATAL_FAILURE(Kill(index, op));
    Worker& worker = workers_[index];
    ++worker.incarnation;
    worker.passes = 0;
    worker.local_step = loop_.step();
  }

  // A worker that waits is taken for dead, as the chief would; the token of one
  // that does not is lost with it, as in TensorFlow. Worker 0 dies with the
  // chief, whose calls stay with the servers until the next chief's.
  void Kill(int64_t index, const Json& op) {
    Worker& worker = workers_.at(index);
    EXPECT_EQ(worker.waits(), op.at("cancelled").get<bool>());
    if (!worker.waits()) return;
    for (const auto& server : servers_) {
      v1::ExpireWorkerRequest request;
      *request.mutable_chief() = server->Chief();
      request.set_worker(static_cast<int>(index));
      request.set_incarnation(worker.incarnation);
      request.set_step(loop_.step());
      ASSERT_OK(Call(server->control(), &Control::ExpireWorker, request));
    }
    // The call that waited there is answered that no token came.
    const auto ended = worker.token.get();
    EXPECT_TRUE(!ended.ok() || ended->outcome() == v1::TOKEN_WAIT);
  }

  // A newer chief finds the servers open. Its calls withdraw those of the older
  // one.
  void StartChiefAgain(const Json& op) {
    ASSERT_NO_FATAL_FAILURE(Restart(0, op));
    withdrawn_ = std::exchange(takes_, {});
    for (int i = 0; i < kServers; ++i) {
      ASSERT_NO_FATAL_FAILURE(Create(i));
      v1::ActivateRequest request;
      *request.mutable_chief() = servers_[i]->Chief();
      request.set_global_step(loop_.step());
      ASSERT_OK(Call(servers_[i]->control(), &Control::Activate, request));
    }
    loop_ = chief::SyncLoop(AllServers(), loop_.step());
    ASSERT_NO_FATAL_FAILURE(FileTakes());
    // A server may have had its gradients, but not all servers.
    int prepared = 0;
    for (TakeFuture& take : withdrawn_) {
      const auto ended = take.get();
      ASSERT_OK(ended);
      prepared += ended->prepared();
    }
    EXPECT_LT(prepared, kServers);
  }

  // Waits for all that the trace says has happened.
  void Settle(const Json& state) {
    while (loop_.step() < ReadInt(state.at("global_step"))) {
      ASSERT_NO_FATAL_FAILURE(FinishStep());
    }
    const std::vector<int64_t> blocked = golden::ReadInts(state.at("blocked"));
    for (size_t i = 0; i < workers_.size(); ++i) {
      Worker& worker = workers_[i];
      if (!worker.waits() || std::count(blocked.begin(), blocked.end(), i)) {
        continue;
      }
      auto token = worker.token.get();
      ASSERT_OK(token);
      ASSERT_EQ(token->outcome(), v1::TOKEN);
      worker.local_step = token->step();
    }
  }

  void Compare(const Json& state) {
    std::vector<int64_t> local_steps;
    std::vector<int64_t> blocked;
    for (size_t i = 0; i < workers_.size(); ++i) {
      local_steps.push_back(workers_[i].local_step);
      if (!workers_[i].waits()) continue;
      EXPECT_FALSE(IsReady(workers_[i].token));
      blocked.push_back(static_cast<int64_t>(i));
    }
    const auto shard = servers_[0]->host().shard().value();
    report_.Expect("global_step", ReadInt(state.at("global_step")),
                   shard->gate()->global_step());
    report_.Expect("local_steps", golden::ReadInts(state.at("local_steps")),
                   local_steps);
    report_.Expect("blocked", golden::ReadInts(state.at("blocked")), blocked);
    report_.Expect(
        "tokens", golden::ReadInts(state.at("tokens")),
        dynamic_cast<server::CompatibleGate&>(*shard->gate()).tokens());
    for (const auto& server : servers_) {
      const auto open = server->host().shard().value();
      EXPECT_OK(open->state().updates().MoveAverages());
    }
    for (size_t v = 0; v < num_variables(); ++v) CompareVariable(v, state);
  }

  void CompareVariable(size_t v, const Json& state) {
    const Json& averages = state.at("averages");
    CompareTensor(v, 0, state.at("variables").at(v));
    if (!IsTrained(v)) {
      // The average of what does not move is its value.
      if (!averages.is_null()) CompareTensor(v, 0, averages.at(v));
      return;
    }
    const auto shard = servers_[ServerOf(v)]->host().shard().value();
    report_.Expect(absl::StrCat("accumulated of ", v),
                   ReadInt(state.at("accumulated").at(v)),
                   dynamic_cast<server::CompatibleEngine&>(shard->engine())
                       .num_accumulated(PartOf(v)));
    int tensor = 0;
    for (const server::SlotSpec& slot : server::Slots(Job().optimizer)) {
      CompareTensor(v, ++tensor, state.at("slots").at(v).at(slot.key));
    }
    if (!averages.is_null()) CompareTensor(v, ++tensor, averages.at(v));
  }

  void CompareTensor(size_t v, int tensor, const Json& recorded) {
    // Not from a snapshot: the trace also has the values in the midst of a
    // step.
    const auto shard = servers_[ServerOf(v)]->host().shard().value();
    std::vector<std::byte> bytes(shard->PartSize(PartOf(v)));
    ASSERT_OK(
        shard->state().values().Read(PartOf(v), tensor, absl::MakeSpan(bytes)));
    report_.ExpectSame(absl::StrCat("tensor ", tensor, " of variable ", v),
                       dtype_, golden::ReadTensor(dtype_, recorded).values,
                       bytes, golden::Zeros::kEqual);
  }

  const Json& scenario_;
  golden::Report& report_;
  const DType dtype_;
  std::vector<Worker> workers_;
  std::vector<TakeFuture> takes_;
  std::vector<TakeFuture> withdrawn_;  // of an older chief
  chief::SyncLoop loop_{AllServers(), 0};
  std::vector<std::unique_ptr<ServedShard>> servers_;
};

TEST(SyncLoopTraceTest, ServicesDoWhatTensorFlowDid) {
  const auto scenarios = golden::ReadScenarios(LOCKSTEP_SYNC_LOOP_TRACE);
  ASSERT_OK(scenarios);
  int whole = 0;
  size_t operations = 0;
  for (const golden::Scenario& scenario : *scenarios) {
    SCOPED_TRACE(absl::StrCat("line ", scenario.line));
    golden::Report report;
    const size_t served = ServedOperations(scenario.json);
    ServedTrace(scenario.json, report).Run(served);
    for (const golden::Difference& difference : report.differences()) {
      ADD_FAILURE() << difference.operation << ": expected "
                    << difference.expected << ", got " << difference.got;
    }
    if (HasFailure()) return;
    whole += served == scenario.json.at("ops").size() ? 1 : 0;
    operations += served;
  }
  // 66 scenarios have 1580 operations; trace_scope.h says why 15 end early.
  EXPECT_EQ(whole, 51);
  EXPECT_EQ(operations, 1316u);
  RecordProperty("scenarios", whole);
}

}  // namespace
}  // namespace lockstep::testing
