#include "chief/checkpoint/growing_tables.h"

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chief/checkpoint/checkpoint_transfer.h"
#include "chief/plan/placement.h"
#include "common/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kWidth = 2;
// By key: the row of the value, then of the slot.
using Rows = std::map<int64_t, std::array<std::array<float, kWidth>, 2>>;

// A server in memory, whose parts are all of one growing table.
class FakeShard final : public ShardAccess {
 public:
  explicit FakeShard(size_t parts) : parts_(parts) {}

  absl::Status ReadSnapshot(const ElementRange& range,
                            absl::Span<char> bytes) override {
    LOCKSTEP_RETURN_IF_ERROR(CheckChief());
    std::vector<char> all;
    for (const auto& [key, row] : parts_.at(range.part)) {
      const auto* from =
          reinterpret_cast<const char*>(row.at(range.tensor).data());
      all.insert(all.end(), from, from + sizeof(float) * kWidth);
    }
    const size_t first = range.first * sizeof(float);
    if (bytes.size() != range.count * sizeof(float) ||
        first + bytes.size() > all.size()) {
      return absl::InternalError("not in the part");
    }
    std::memcpy(bytes.data(), &all[first], bytes.size());
    return absl::OkStatus();
  }
  absl::Status ReadKeys(int part, int64_t first,
                        absl::Span<int64_t> keys) override {
    LOCKSTEP_RETURN_IF_ERROR(CheckChief());
    std::vector<int64_t> all;
    for (const auto& [key, row] : parts_.at(part)) all.push_back(key);
    if (first + keys.size() > all.size()) {
      return absl::InternalError("not in the part");
    }
    std::copy_n(all.begin() + first, keys.size(), keys.begin());
    return absl::OkStatus();
  }
  absl::Status WriteRows(int part, int tensor, absl::Span<const int64_t> keys,
                         absl::Span<const char> bytes) override {
    if (bytes.size() != keys.size() * sizeof(float) * kWidth) {
      return absl::InternalError("not as long as the rows");
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      std::memcpy(parts_.at(part)[keys[i]].at(tensor).data(),
                  &bytes[i * sizeof(float) * kWidth], sizeof(float) * kWidth);
    }
    return absl::OkStatus();
  }
  absl::Status WriteParts(const ElementRange&,
                          absl::Span<const char>) override {
    return absl::InternalError("a growing table is written by rows");
  }

  // So many reads are answered before another chief takes the server over.
  int reads_left_ = 1'000'000;
  std::vector<Rows> parts_;

 private:
  absl::Status CheckChief() {
    return reads_left_-- > 0 ? absl::OkStatus()
                             : absl::AbortedError("a newer chief is here");
  }
};

struct Cluster {
  StateMap map;
  std::vector<std::unique_ptr<FakeShard>> shards;

  std::vector<ShardAccess*> Access() const {
    std::vector<ShardAccess*> access;
    for (const auto& shard : shards) access.push_back(shard.get());
    return access;
  }
  JobSnapshot Snapshot() const {
    JobSnapshot snapshot;
    for (const auto& shard : shards) {
      snapshot.rows.emplace_back();
      for (const Rows& part : shard->parts_) {
        snapshot.rows.back().push_back(static_cast<int64_t>(part.size()));
      }
    }
    return snapshot;
  }
  Rows All() const {
    Rows all;
    for (const auto& shard : shards) {
      for (const Rows& part : shard->parts_) {
        all.insert(part.begin(), part.end());
      }
    }
    return all;
  }
};

class GrowingTablesTest : public ::testing::Test {
 protected:
  // The table is in as many parts as there are servers.
  Cluster MakeCluster(int servers) const {
    const auto plan = MakePlan({table_}, servers, 1 << 20);
    EXPECT_OK(plan);
    Cluster cluster{{*plan, {{"Momentum"}}, {}}, {}};
    for (int server = 0; server < servers; ++server) {
      size_t parts = 0;
      for (const Part& part : plan->parts) {
        parts += part.server == server;
      }
      cluster.shards.push_back(std::make_unique<FakeShard>(parts));
    }
    return cluster;
  }
  // So many rows, whose numbers follow from their keys.
  static void Fill(Cluster& cluster, int rows) {
    const auto parts = static_cast<int64_t>(cluster.map.plan.parts.size());
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t key = i * i * 1000;
      const auto x = static_cast<float>(key);
      const Part& part = cluster.map.plan.parts[PartOfKey(key, parts)];
      cluster.shards[part.server]->parts_[part.index][key] = {
          {{x, x + 1}, {-x, -x - 1}}};
    }
  }
  absl::Status Save(const Cluster& cluster, int64_t step,
                    const OnTransferred& on_transferred = {}) const {
    Manifest manifest;
    manifest.job_name = "job";
    manifest.job_id = "job-1";
    manifest.global_step = step;
    manifest.mode = "strict";
    manifest.num_workers = 2;
    manifest.saved_at_unix_ms = 1;
    return SaveCheckpoint(store_, manifest, cluster.map, cluster.Snapshot(),
                          cluster.Access(), on_transferred)
        .status();
  }
  absl::Status Restore(int64_t step, Cluster& cluster,
                       const OnTransferred& on_transferred = {}) const {
    const auto checkpoint = store_.Open(step);
    LOCKSTEP_RETURN_IF_ERROR(checkpoint.status());
    return RestoreCheckpoint(*checkpoint, cluster.map, cluster.Access(),
                             on_transferred)
        .status();
  }
  // All bytes of a tensor.
  std::string Bytes(int64_t step, const std::string& name) const {
    const auto checkpoint = store_.Open(step);
    EXPECT_OK(checkpoint);
    const SafetensorsReader& file = **checkpoint->FileOf(name);
    std::string bytes(file.Find(name)->bytes, '\0');
    EXPECT_OK(file.ReadAt(name, 0, absl::MakeSpan(bytes)));
    return bytes;
  }

  VariableSpec table_ = {
      "t", {600'000, kWidth}, DType::kFloat32, {}, RowCut::kKey};
  const testing::TempDir temp_dir_;
  const CheckpointStore store_{temp_dir_.Join("checkpoints")};
};

TEST_F(GrowingTablesTest, RowsAreRestoredOntoAnyNumberOfServers) {
  for (int from : {1, 2, 3}) {
    Cluster saved = MakeCluster(from);
    Fill(saved, 50);
    ASSERT_OK(Save(saved, from));
    for (int to : {1, 3, 5}) {
      Cluster restored = MakeCluster(to);
      ASSERT_OK(Restore(from, restored));
      EXPECT_EQ(restored.All(), saved.All()) << from << " to " << to;
      for (const Part& part : restored.map.plan.parts) {
        for (const auto& [key, row] :
             restored.shards[part.server]->parts_[part.index]) {
          EXPECT_EQ(PartOfKey(key, to), part.offset / kWidth);
        }
      }
    }
    for (const char* tensor : {"t", "t/keys", "t/Momentum"}) {
      EXPECT_EQ(Bytes(from, tensor), Bytes(1, tensor)) << tensor;
    }
  }
}

TEST_F(GrowingTablesTest, MoreRowsThanAMessageHoldsAreMovedInSeveral) {
  Cluster saved = MakeCluster(2);
  Fill(saved, 200'000);
  ASSERT_OK(Save(saved, 1));
  Cluster restored = MakeCluster(3);
  ASSERT_OK(Restore(1, restored));
  EXPECT_TRUE(restored.All() == saved.All());
}

TEST_F(GrowingTablesTest, TransfersReportTheirProgressAfterEachBlock) {
  constexpr int64_t kRow = 8 + 2 * sizeof(float) * kWidth;  // key, value, slot
  constexpr int64_t kBlock = 131'072;
  constexpr int64_t kRows = 200'000;
  std::vector<int64_t> reports;
  const auto report = [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, kRows * kRow);
    reports.push_back(done);
    return absl::OkStatus();
  };
  Cluster saved = MakeCluster(2);
  Fill(saved, kRows);

  ASSERT_OK(Save(saved, 1, report));
  EXPECT_THAT(reports, ElementsAre(0, kBlock * kRow, kRows * kRow));

  reports.clear();
  Cluster restored = MakeCluster(3);
  ASSERT_OK(Restore(1, restored, report));
  EXPECT_THAT(reports, ElementsAre(0, kBlock * kRow, kRows * kRow));
}

TEST_F(GrowingTablesTest, AnErrorOfTheReportEndsTheRestoreAfterItsBlock) {
  Cluster saved = MakeCluster(2);
  Fill(saved, 200'000);
  ASSERT_OK(Save(saved, 1));
  Cluster restored = MakeCluster(3);

  EXPECT_THAT(Restore(1, restored,
                      [](int64_t done, int64_t) {
                        return done == 0 ? absl::OkStatus()
                                         : absl::CancelledError("stop");
                      }),
              StatusIs(absl::StatusCode::kCancelled));

  EXPECT_EQ(restored.All().size(), 131'072u);
}

TEST_F(GrowingTablesTest, ACheckpointHasKeysThatAscendBesideTheRows) {
  Cluster saved = MakeCluster(3);
  Fill(saved, 4);
  ASSERT_OK(Save(saved, 1));
  const auto checkpoint = store_.Open(1);
  ASSERT_OK(checkpoint);
  EXPECT_THAT(checkpoint->ReadKeys("t"),
              IsOkAndHolds(ElementsAre(0, 1000, 4000, 9000)));
  EXPECT_OK(checkpoint->CheckVariable(table_));
  std::vector<float> rows(8);
  ASSERT_OK(checkpoint->Read("t", absl::MakeSpan(rows)));
  EXPECT_THAT(rows, ElementsAre(0, 1, 1000, 1001, 4000, 4001, 9000, 9001));
}

TEST_F(GrowingTablesTest, ATableWithoutRowsIsSavedToo) {
  Cluster saved = MakeCluster(2);
  ASSERT_OK(Save(saved, 1));
  Cluster restored = MakeCluster(1);
  ASSERT_OK(Restore(1, restored));
  EXPECT_THAT(restored.All(), IsEmpty());
}

TEST_F(GrowingTablesTest, TableThatDoesNotFitIsRefusedAndNothingWritten) {
  Cluster saved = MakeCluster(1);
  Fill(saved, 5);
  ASSERT_OK(Save(saved, 1));
  const auto refused = [&](const VariableSpec& table, const std::string& why) {
    const VariableSpec before = std::exchange(table_, table);
    Cluster cluster = MakeCluster(1);
    EXPECT_THAT(Restore(1, cluster),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("step 1"), HasSubstr(why))));
    EXPECT_THAT(cluster.All(), IsEmpty());
    table_ = before;
  };
  refused({"t", {4, kWidth}, DType::kFloat32, {}, RowCut::kKey},
          "raise model.row_limit");
  refused({"t", {9, 3}, DType::kFloat32, {}, RowCut::kKey}, "[5,3]");
  refused({"t", {9, kWidth}, DType::kFloat64, {}, RowCut::kKey}, "F64");
  refused({"u", {9, kWidth}, DType::kFloat32, {}, RowCut::kKey}, "no \"u/keys");
  refused({"t", {5, kWidth}, DType::kFloat32, {}, RowCut::kMod},
          "as a growing table");
}

TEST_F(GrowingTablesTest, AChiefThatWasReplacedCompletesNoCheckpoint) {
  Cluster saved = MakeCluster(1);
  Fill(saved, 5);
  saved.shards[0]->reads_left_ = 3;  // the keys, the values, and the slots
  EXPECT_THAT(Save(saved, 1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(store_.Open(1), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(GrowingTablesTest, AServerThatSaysNothingOfItsRowsFailsTheSave) {
  Cluster saved = MakeCluster(2);
  JobSnapshot snapshot = saved.Snapshot();
  snapshot.rows.pop_back();
  EXPECT_THAT(CountRows(saved.map, 0, snapshot),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("ps 1")));
  snapshot.rows.push_back({-1});
  EXPECT_THAT(CountRows(saved.map, 0, snapshot),
              StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace lockstep::chief
