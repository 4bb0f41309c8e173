// The promises of ShardCalls and ShardAccess, and the sources of a report's
// fields: through the client, against a server that notes its requests.

#include "chief/servers/shard_calls.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/servers/server_report.h"
#include "chief/servers/shard_access.h"
#include "chief/servers/shard_control_client.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;

// Answers at once, as a test has set it, and keeps the last request.
class NotingService final : public v1::ShardControlService::CallbackService {
 public:
  grpc::ServerUnaryReactor* CreateShard(
      grpc::CallbackServerContext* context,
      const v1::CreateShardRequest* request,
      v1::CreateShardResponse* response) override {
    create = *request;
    *response = created;
    return Answer(context);
  }
  grpc::ServerUnaryReactor* ExpireWorker(
      grpc::CallbackServerContext* context,
      const v1::ExpireWorkerRequest* request,
      v1::ExpireWorkerResponse* response) override {
    expire = *request;
    *response = expired;
    return Answer(context);
  }
  grpc::ServerUnaryReactor* BeginSnapshot(
      grpc::CallbackServerContext* context,
      const v1::BeginSnapshotRequest* request,
      v1::BeginSnapshotResponse* response) override {
    snapshot_step = request->global_step();
    // The copy takes longer than one call.
    if (++snapshot_calls == 1) {
      response->mutable_working()->set_done_bytes(1);
    } else {
      *response = snapshot;
    }
    return Answer(context);
  }
  grpc::ServerUnaryReactor* ReadSnapshot(
      grpc::CallbackServerContext* context,
      const v1::ReadSnapshotRequest* request,
      v1::ReadSnapshotResponse* response) override {
    read = *request;
    *response = bytes;
    return Answer(context);
  }
  grpc::ServerUnaryReactor* WriteParts(
      grpc::CallbackServerContext* context,
      const v1::WritePartsRequest* request,
      v1::WritePartsResponse* /*response*/) override {
    written = *request;
    return Answer(context);
  }

  v1::CreateShardRequest create;
  v1::CreateShardResponse created;
  v1::ExpireWorkerRequest expire;
  v1::ExpireWorkerResponse expired;
  int snapshot_calls = 0;
  int64_t snapshot_step = 0;
  v1::BeginSnapshotResponse snapshot;
  v1::ReadSnapshotRequest read;
  v1::ReadSnapshotResponse bytes;
  v1::WritePartsRequest written;

 private:
  static grpc::ServerUnaryReactor* Answer(
      grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

// The little-endian elements of a message.
template <typename T>
std::string BytesOf(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()),
          elements.size() * sizeof(T)};
}

class ShardCallsTest : public ::testing::Test {
 protected:
  ShardCallsTest() {
    auto server = GrpcServer::Start("127.0.0.1:0", {&service_});
    EXPECT_OK(server);
    if (!server.ok()) return;
    server_ = *std::move(server);
    calls_ = std::make_unique<chief::ShardControlClient>(
        absl::StrCat("127.0.0.1:", server_->port()),
        Sender{"job-1", {TaskType::kChief, 0}, 4});
    calls_->set_epoch(9);
  }

  // One variable in one part, on server 1 of 2.
  static Plan PlanOf() {
    Plan plan;
    plan.variables = {{.name = "w", .shape = {4}}};
    plan.parts = {{.variable = 0, .count = 4, .server = 1}};
    return plan;
  }
  absl::StatusOr<chief::ShardCalls::Created> Create(
      int server, chief::ShardCalls::State state) {
    return calls_->CreateShard(JobConfig(), PlanOf(), server, state);
  }
  // The snapshot of step 6, of which the server answers `bytes`.
  void TakeSnapshot(const std::string& bytes) {
    service_.snapshot.set_global_step(6);
    EXPECT_OK(calls_->BeginSnapshot(6));
    service_.bytes.mutable_header()->set_global_step(6);
    service_.bytes.set_payload(bytes);
  }

  NotingService service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<chief::ShardCalls> calls_;
};

TEST_F(ShardCallsTest, ShardInTheMakingHasItsProgressAndNoReport) {
  service_.created.mutable_working()->set_done_bytes(3);
  service_.created.mutable_working()->set_total_bytes(8);

  const auto created = Create(1, chief::ShardCalls::State::kKeep);

  ASSERT_OK(created);
  ASSERT_TRUE(created->working.has_value());
  EXPECT_EQ(created->working->done_bytes, 3);
  EXPECT_EQ(created->working->total_bytes, 8);
}

TEST_F(ShardCallsTest, ReportIsTheStateThatTheServerNames) {
  service_.created.add_variables()->add_names("Momentum");
  service_.created.add_scalars("beta1_power");
  service_.created.set_active(true);
  service_.created.set_committed_step(5);
  service_.created.set_prepared_step(6);
  service_.created.set_attempt(2);
  service_.created.add_workers()->set_worker(3);
  service_.created.set_opened_epoch(8);

  const auto created = Create(1, chief::ShardCalls::State::kKeep);

  ASSERT_OK(created);
  EXPECT_FALSE(created->working.has_value());
  EXPECT_THAT(created->slots, ElementsAre(ElementsAre("Momentum")));
  EXPECT_THAT(created->scalars, ElementsAre("beta1_power"));
  const chief::ServerReport& report = created->report;
  EXPECT_TRUE(report.has_parts);
  EXPECT_TRUE(report.active);
  EXPECT_EQ(report.committed_step, 5);
  EXPECT_EQ(report.prepared_step, 6);
  EXPECT_EQ(report.attempt, 2);
  ASSERT_EQ(report.workers.size(), 1U);
  EXPECT_EQ(report.workers[0].worker, 3);
  EXPECT_EQ(report.opened_epoch, 8U);
  EXPECT_TRUE(report.takes_part);
  EXPECT_FALSE(service_.create.discard());
}

TEST_F(ShardCallsTest, ServerWithoutPartsHasNoStateToLose) {
  service_.created.add_variables();

  const auto created = Create(0, chief::ShardCalls::State::kDiscard);

  ASSERT_OK(created);
  EXPECT_FALSE(created->report.has_parts);
  EXPECT_TRUE(service_.create.discard());
}

TEST_F(ShardCallsTest, AnswerAboutAnotherModelIsRefused) {
  EXPECT_THAT(Create(1, chief::ShardCalls::State::kKeep),
              StatusIs(absl::StatusCode::kInternal));
}

TEST_F(ShardCallsTest, LaterCallsHaveTheEpochAndTheIncarnation) {
  service_.expired.set_step(5);
  service_.expired.set_incarnation(17);
  calls_->set_incarnation(21);

  const auto expired = calls_->ExpireWorker(2, 17, "its lease is over", 0, 0);

  ASSERT_OK(expired);
  EXPECT_EQ(expired->step, 5);
  EXPECT_EQ(expired->incarnation, 17U);
  EXPECT_EQ(service_.expire.chief().epoch(), 9U);
  EXPECT_EQ(service_.expire.chief().identity().incarnation(), 21U);
  EXPECT_EQ(service_.expire.worker(), 2);
}

TEST_F(ShardCallsTest, SnapshotIsAwaitedAndDescribed) {
  service_.snapshot.set_global_step(6);
  service_.snapshot.add_scalars(0.5F);
  service_.snapshot.add_rows(40);

  const auto snapshot = calls_->BeginSnapshot(6);

  ASSERT_OK(snapshot);
  EXPECT_EQ(service_.snapshot_calls, 2);
  EXPECT_EQ(service_.snapshot_step, 6);
  EXPECT_EQ(snapshot->global_step, 6);
  EXPECT_THAT(snapshot->scalars, ElementsAre(0.5F));
  EXPECT_THAT(snapshot->rows, ElementsAre(40));
}

TEST_F(ShardCallsTest, ReadFillsTheBytesOfTheRange) {
  const std::vector<float> sent = {1, 2};
  TakeSnapshot(BytesOf(sent));
  std::string bytes(8, '\0');

  ASSERT_OK(calls_->ReadSnapshot(
      {.part = 3, .tensor = 1, .first = 2, .count = 2}, absl::MakeSpan(bytes)));

  EXPECT_EQ(bytes, BytesOf(sent));
  const v1::TensorSelector& selector = service_.read.selector();
  EXPECT_EQ(selector.parts().first_part(), 3);
  EXPECT_EQ(selector.parts().num_parts(), 1);
  EXPECT_EQ(selector.tensor(), 1);
  EXPECT_EQ(selector.first_element(), 2);
  EXPECT_EQ(selector.num_elements(), 2);
  EXPECT_FALSE(selector.keys());
}

TEST_F(ShardCallsTest, ReadOfKeysNamesThemInPlaceOfElements) {
  const std::vector<int64_t> sent = {7, 11, 13};
  TakeSnapshot(BytesOf(sent));
  std::vector<int64_t> keys(3);

  ASSERT_OK(calls_->ReadKeys(2, 5, absl::MakeSpan(keys)));

  EXPECT_EQ(keys, sent);
  EXPECT_TRUE(service_.read.selector().keys());
  EXPECT_EQ(service_.read.selector().first_element(), 5);
  EXPECT_EQ(service_.read.selector().num_elements(), 3);
}

// Neither must get into a checkpoint.
TEST_F(ShardCallsTest, ReadRefusesAnotherSnapshotAndAnotherNumberOfBytes) {
  TakeSnapshot("12345678");
  std::string bytes(4, '\0');
  const chief::ElementRange range{.count = 1};
  EXPECT_THAT(calls_->ReadSnapshot(range, absl::MakeSpan(bytes)),
              StatusIs(absl::StatusCode::kInternal));

  service_.bytes.mutable_header()->set_global_step(7);
  EXPECT_THAT(calls_->ReadSnapshot(range, absl::MakeSpan(bytes)),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ShardCallsTest, WritesNameTheElementsOrTheRows) {
  const std::string values = "12345678";
  ASSERT_OK(calls_->WriteParts({.part = 1, .first = 4, .count = 2}, values));
  EXPECT_EQ(service_.written.header().selector().parts().first_part(), 1);
  EXPECT_EQ(service_.written.header().selector().first_element(), 4);
  EXPECT_EQ(service_.written.header().selector().num_elements(), 2);
  EXPECT_TRUE(service_.written.header().keys().empty());
  EXPECT_EQ(service_.written.payload(), values);

  const std::vector<int64_t> keys = {30, 10};
  ASSERT_OK(calls_->WriteRows(1, 2, keys, values));
  EXPECT_EQ(service_.written.header().selector().tensor(), 2);
  EXPECT_EQ(service_.written.header().selector().num_elements(), 0);
  EXPECT_THAT(service_.written.header().keys(), ElementsAre(30, 10));
  EXPECT_EQ(service_.written.payload(), values);
}

}  // namespace
}  // namespace lockstep::testing
