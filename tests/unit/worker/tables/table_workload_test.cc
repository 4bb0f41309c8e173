#include "worker/tables/table_workload.h"

#include <memory>
#include <utility>
#include <vector>

#include "common/checkpoint/checkpoint_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TableWorkloadTest, MissingFieldOfAKindIsNamed) {
  JobConfig job;
  job.model.kind = "mlp";
  const auto missing = [](const char* field) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(field));
  };
  EXPECT_THAT(MakeTableWorkload(job, Purpose::kTrain), missing("model.kind"));
  job.model.kind = "logistic_regression";
  EXPECT_THAT(MakeTableWorkload(job, Purpose::kTrain),
              missing("data.train_files"));
  job.data.train_files = {"/nowhere"};
  EXPECT_THAT(MakeTableWorkload(job, Purpose::kTrain),
              missing("model.features"));
  job.model.features = 5;
  job.model.row_limit = 5;
  EXPECT_THAT(MakeTableWorkload(job, Purpose::kTrain), missing("both set"));
  job.model.kind = "skip_gram";
  EXPECT_THAT(MakeTableWorkload(job, Purpose::kTrain),
              missing("model.embedding_dim"));
  job.model.kind = "wide_and_deep";
  job.model.row_limit = 0;
  job.model.features = 10;
  job.model.embedding_rows = 10;
  job.model.categorical = {"a"};
  EXPECT_THAT(MakeTableWorkload(job, Purpose::kTrain),
              missing("model.embedding_dim"));
  job.model.embedding_dim = 4;
  EXPECT_THAT(MakeTableWorkload(job, Purpose::kTrain),
              missing("model.hidden_units"));
}

TEST(TableWorkloadTest, TablesAreFloat32) {
  JobConfig job;
  job.model.kind = "skip_gram";
  job.model.variable_type = DType::kFloat16;
  job.data.train_files = {"/nowhere"};
  EXPECT_THAT(MakeTableWorkload(job, Purpose::kTrain),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model.variable_type must be float32")));
}

// A checkpoint of a table of three rows of two floats, of the keys 2, 5 and
// 2^40.
class ReadTableRowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    CheckpointTensors tensors;
    tensors.model = {{"t", TensorType::kF32, {3, 2}},
                     {"t/keys", TensorType::kI64, {3}}};
    const CheckpointStore store(dir_.path());
    auto writer = store.Begin(1, tensors);
    ASSERT_OK(writer);
    const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
    const std::vector<int64_t> keys = {2, 5, int64_t{1} << 40};
    ASSERT_OK((*writer)->model().WriteAt(
        "t", 0, {reinterpret_cast<const char*>(rows.data()), 24}));
    ASSERT_OK((*writer)->model().WriteAt(
        "t/keys", 0, {reinterpret_cast<const char*>(keys.data()), 24}));
    Manifest manifest;
    manifest.job_name = "job";
    manifest.mode = "strict";
    manifest.num_workers = 1;
    ASSERT_OK((*writer)->Commit(manifest));
    auto reader = store.Open(1);
    ASSERT_OK(reader);
    reader_ = std::make_unique<CheckpointReader>(*std::move(reader));
  }

  const testing::TempDir dir_;
  std::unique_ptr<CheckpointReader> reader_;
};

TEST_F(ReadTableRowsTest, OfAGrowingTableKeysWithoutARowHaveZeros) {
  const VariableSpec table{"t", {9, 2}, DType::kFloat32, {}, RowCut::kKey};
  EXPECT_THAT(
      ReadTableRows(*reader_, table,
                    {0, 2, 3, int64_t{1} << 40, (int64_t{1} << 40) + 1}),
      IsOkAndHolds(ElementsAre(0, 0, 1, 2, 0, 0, 5, 6, 0, 0)));
  EXPECT_THAT(ReadTableRows(*reader_, table, {}), IsOkAndHolds(IsEmpty()));
}

TEST_F(ReadTableRowsTest, RowsOfAGrownTableAreNotThoseOfAnother) {
  EXPECT_FALSE(ReadTableRows(*reader_,
                             {"t", {3, 2}, DType::kFloat32, {}, RowCut::kMod},
                             {0})
                   .ok());
  EXPECT_FALSE(ReadTableRows(*reader_,
                             {"t", {3, 3}, DType::kFloat32, {}, RowCut::kKey},
                             {0})
                   .ok());
}

}  // namespace
}  // namespace lockstep::worker
