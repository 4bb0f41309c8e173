// A growing table over loopback: a worker's client, servers, and a chief's
// clients with checkpoints.

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/plan/placement.h"
#include "chief/recovery/shard_group.h"
#include "chief/servers/shard_control_client.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/wire/tensor_message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/push_codec.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "worker/client/parameter_client.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Keys = std::vector<int64_t>;

// Servers of a job whose one variable is a growing table of rows of two floats,
// trained by Momentum; and worker 1, whose gradients make a step.
class TestCluster {
 public:
  TestCluster(int servers, int64_t row_limit)
      : plan_(*chief::MakePlan({{"t",
                                 {row_limit, 2},
                                 DType::kFloat32,
                                 {Initializer::Kind::kUniform, -1, 1},
                                 RowCut::kKey}},
                               servers, 1 << 20)),
        memory_(*worker::ParameterMemory::Make(plan_.variables)) {
    const Sender chief{kJobId, {TaskType::kChief, 0}, /*incarnation=*/1};
    std::vector<std::string> addresses;
    for (int i = 0; i < servers; ++i) {
      shards_.push_back(std::make_unique<ServedShard>(i));
      shards_.back()->host().SetJobId(kJobId);
      addresses.push_back(shards_.back()->address());
      clients_.push_back(
          std::make_unique<chief::ShardControlClient>(addresses.back(), chief));
      group_.Add(*clients_.back());
    }
    worker_ = std::make_unique<worker::ParameterClient>(
        worker::ParameterClient::Options{addresses,
                                         {kJobId, {TaskType::kWorker, 1}, 1},
                                         /*max_part_bytes=*/1 << 20},
        plan_, memory_);
  }

  // `numbers` > 0: work is shared, so many micro-batches a step.
  void Create(int numbers = 0) {
    JobConfig job = shards_[0]->Job();
    job.optimizer.kind = OptimizerConfig::Kind::kMomentum;
    if (numbers > 0) {
      job.work = Work::kShared;
      job.batch_size = job.micro_batches_per_step = numbers;
      job.replicas_to_aggregate = numbers;
      job.initial_tokens = -1;
    }
    ASSERT_OK(group_.TakeEpoch());
    for (auto& shard : shards_) shard->set_epoch(group_.epoch());
    auto found = group_.Create(job, plan_, chief::ShardCalls::State::kDiscard,
                               [](int, const chief::ShardCalls::Working&) {
                                 return absl::OkStatus();
                               });
    ASSERT_OK(found);
    map_ = std::move(found->map);
  }
  void Activate(int64_t step) {
    chief::ShardCalls::Opening opening;
    opening.global_step = step;
    ASSERT_OK(group_.Activate(opening));
  }
  absl::Status Restore(const CheckpointReader& checkpoint) {
    return group_.Restore(checkpoint, map_).status();
  }
  absl::Status Save(const CheckpointStore& store, int64_t step) {
    auto snapshot = group_.BeginSnapshot(step, 1);
    if (!snapshot.ok()) return snapshot.status();
    Manifest manifest;
    manifest.job_name = "job";
    manifest.job_id = kJobId;
    manifest.global_step = step;
    manifest.mode = "strict";
    manifest.num_workers = 1;
    manifest.saved_at_unix_ms = 1;
    return chief::SaveCheckpoint(store, manifest, map_, *snapshot,
                                 group_.Access())
        .status();
  }

  absl::StatusOr<std::vector<float>> Pull(int64_t step, const Keys& keys) {
    EXPECT_OK(memory_.ChooseRows(0, keys));
    const absl::StatusOr<int64_t> pulled = worker_->Pull(step);
    if (!pulled.ok()) return pulled.status();
    const absl::Span<std::byte> value = memory_.value(0);
    const auto* floats = reinterpret_cast<const float*>(value.data());
    return std::vector<float>(floats, floats + value.size() / sizeof(float));
  }
  // Asks the first server for rows in the name of any worker.
  absl::Status PullAs(int worker, const Keys& keys) {
    v1::PullRequest request = ServedShard::PullRequest(0);
    *request.mutable_identity() = ServedShard::Worker(worker);
    request.mutable_parts()->set_num_parts(1);
    request.mutable_rows()->mutable_ids()->Assign(keys.begin(), keys.end());
    return Call(shards_[0]->parameters(), &v1::ParameterService::Stub::Pull,
                request)
        .status();
  }
  // Reads a push of these rows and counts as the first server does.
  absl::StatusOr<server::Push> Decode(const Keys& keys,
                                      const std::vector<int>& counts) {
    v1::PushRequest request = ServedShard::PushRequest(0, 1, 1);
    request.mutable_header()->mutable_parts()->set_num_parts(1);
    v1::RowIds& rows = *request.mutable_header()->add_rows();
    rows.mutable_ids()->Assign(keys.begin(), keys.end());
    rows.mutable_counts()->Assign(counts.begin(), counts.end());
    request.set_payload(std::string(keys.size() * 2 * sizeof(float), 0));
    const grpc::Slice bytes(request.SerializeAsString());
    v1::PushHeader header;
    TensorPayload payload;
    EXPECT_OK(
        DecodeTensorMessage(grpc::ByteBuffer(&bytes, 1), header, payload));
    const auto shard = shards_[0]->host().shard();
    if (!shard.ok()) return shard.status();
    return server::ToPush(header, payload, **shard);
  }
  // One whole step with these rows.
  void Step(int64_t step, const Keys& keys) {
    ASSERT_OK(Pull(step, keys));
    const absl::Span<std::byte> gradient = memory_.gradient(0);
    std::fill_n(reinterpret_cast<float*>(gradient.data()),
                gradient.size() / sizeof(float), 1.0f);
    const PassId pass{step, step + 1, 0};
    worker_->BeginPass(pass, worker::StepClient::PassKind::kSomeCount,
                       /*watch=*/false);
    const auto announced = worker_->Announce(pass);
    ASSERT_OK(announced);
    ASSERT_OK(worker_->Push(pass, announced->attempt));
    for (auto& shard : shards_) shard->FinishStep(step);
  }

 private:
  const Plan plan_;
  worker::ParameterMemory memory_;
  std::vector<std::unique_ptr<ServedShard>> shards_;
  std::vector<std::unique_ptr<chief::ShardControlClient>> clients_;
  chief::ShardGroup group_;
  chief::StateMap map_;
  std::unique_ptr<worker::ParameterClient> worker_;
};

class GrowingTableTest : public ::testing::Test {
 protected:
  static std::unique_ptr<TestCluster> Open(int servers, int64_t row_limit) {
    auto cluster = std::make_unique<TestCluster>(servers, row_limit);
    cluster->Create();
    cluster->Activate(0);
    return cluster;
  }

  const Keys some_ = {3, 1'000'000'007, int64_t{1} << 62};
  const Keys all_ = {0, 3, 40, 1'000'000'007, int64_t{1} << 62};
  const TempDir temp_dir_;
  const CheckpointStore store_{temp_dir_.Join("checkpoints")};
};

TEST_F(GrowingTableTest, ValuesAreTheSameForAnyNumberOfServers) {
  std::vector<float> expected;
  for (int servers : {1, 2, 3}) {
    auto cluster = Open(servers, 30);
    ASSERT_NO_FATAL_FAILURE(cluster->Step(0, some_));
    ASSERT_NO_FATAL_FAILURE(cluster->Step(1, all_));
    const auto values = cluster->Pull(2, all_);
    ASSERT_OK(values);
    if (expected.empty()) expected = *values;
    EXPECT_EQ(*values, expected) << servers;
  }
}

TEST_F(GrowingTableTest, ARestoredJobGoesOnAsIfNothingHadHappened) {
  auto undisturbed = Open(2, 30);
  ASSERT_NO_FATAL_FAILURE(undisturbed->Step(0, some_));
  ASSERT_NO_FATAL_FAILURE(undisturbed->Step(1, {3, 77}));
  ASSERT_OK(undisturbed->Save(store_, 2));
  ASSERT_NO_FATAL_FAILURE(undisturbed->Step(2, all_));
  const auto expected = undisturbed->Pull(3, all_);
  ASSERT_OK(expected);
  const auto checkpoint = store_.Open(2);
  ASSERT_OK(checkpoint);
  EXPECT_THAT(
      checkpoint->ReadKeys("t"),
      IsOkAndHolds(ElementsAre(3, 77, 1'000'000'007, int64_t{1} << 62)));

  for (int servers : {1, 3}) {
    TestCluster restored(servers, 30);
    ASSERT_NO_FATAL_FAILURE(restored.Create());
    ASSERT_OK(restored.Restore(*checkpoint));
    ASSERT_NO_FATAL_FAILURE(restored.Activate(2));
    ASSERT_NO_FATAL_FAILURE(restored.Step(2, all_));
    EXPECT_THAT(restored.Pull(3, all_), IsOkAndHolds(*expected));
  }
}

// Each key is nine bytes of a message: those of a batch, and of a block of a
// checkpoint, are more than a mebibyte.
TEST_F(GrowingTableTest, ManyRowsOfLargeKeysAreTrainedSavedAndRestored) {
  constexpr int64_t kRows = 300'000;
  constexpr int64_t kLimit = 320'000;
  Keys keys(kRows);
  std::iota(keys.begin(), keys.end(), int64_t{1} << 62);
  auto undisturbed = Open(1, kLimit);
  ASSERT_NO_FATAL_FAILURE(undisturbed->Step(0, keys));
  ASSERT_OK(undisturbed->Save(store_, 1));
  ASSERT_NO_FATAL_FAILURE(undisturbed->Step(1, keys));
  const auto expected = undisturbed->Pull(2, keys);
  ASSERT_OK(expected);
  undisturbed.reset();
  const auto checkpoint = store_.Open(1);
  ASSERT_OK(checkpoint);
  EXPECT_THAT(checkpoint->ReadKeys("t"), IsOkAndHolds(keys));

  for (int servers : {1, 3}) {
    TestCluster restored(servers, kLimit);
    ASSERT_NO_FATAL_FAILURE(restored.Create());
    ASSERT_OK(restored.Restore(*checkpoint));
    ASSERT_NO_FATAL_FAILURE(restored.Activate(1));
    ASSERT_NO_FATAL_FAILURE(restored.Step(1, keys));
    const auto values = restored.Pull(2, keys);
    ASSERT_OK(values);
    EXPECT_TRUE(*values == *expected) << servers << " servers";
  }
}

TEST_F(GrowingTableTest, APullThatFindsNoRoomTellsTheWorkerWhatToDo) {
  auto cluster = Open(1, 4);
  ASSERT_NO_FATAL_FAILURE(cluster->Step(0, {1, 2, 3}));
  EXPECT_THAT(cluster->Pull(1, {1, 4, 5}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("\"t\" grows to 4 rows"),
                             HasSubstr("has 3 of its 4 and needs 2 more"),
                             HasSubstr("raise model.row_limit"))));
  ASSERT_NO_FATAL_FAILURE(cluster->Step(1, {1, 9}));
}

TEST_F(GrowingTableTest, CountsOfRowsAreThoseOfMicroBatches) {
  TestCluster cluster(1, 100);
  cluster.Create(/*numbers=*/4);

  const auto push = cluster.Decode({7, 9}, {1, 4});
  ASSERT_OK(push);
  EXPECT_THAT(push->gradients[0].rows->counts, ElementsAre(1, 4));

  for (const int wrong : {0, -1, 5}) {
    EXPECT_THAT(cluster.Decode({7}, {wrong}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("the count ", wrong))));
  }
}

TEST_F(GrowingTableTest, CountsNeedSharedWork) {
  TestCluster cluster(1, 100);
  cluster.Create();

  EXPECT_OK(cluster.Decode({7}, {}));
  EXPECT_THAT(cluster.Decode({7}, {1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("work is not SHARED")));
}

TEST_F(GrowingTableTest, WorkerThatTheJobDoesNotHaveMakesNoRows) {
  auto cluster = Open(1, 4);
  EXPECT_THAT(cluster->PullAs(1000000, {11, 12, 13, 14}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("worker 1000000")));
  EXPECT_OK(cluster->PullAs(0, {1, 2, 3, 4}));  // they have room
}

TEST_F(GrowingTableTest, ACheckpointWithMoreRowsThanTheLimitIsRefused) {
  auto saved = Open(1, 30);
  ASSERT_NO_FATAL_FAILURE(saved->Step(0, all_));
  ASSERT_OK(saved->Save(store_, 1));
  const auto checkpoint = store_.Open(1);
  ASSERT_OK(checkpoint);
  TestCluster small(1, 4);
  ASSERT_NO_FATAL_FAILURE(small.Create());
  EXPECT_THAT(small.Restore(*checkpoint),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("5 rows of \"t\", which grows to 4")));
}

}  // namespace
}  // namespace lockstep::testing
