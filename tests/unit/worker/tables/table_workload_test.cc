#include "worker/tables/table_workload.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

TEST(TableWorkloadTest, KindsWithTablesAreKnown) {
  EXPECT_TRUE(IsTableModel("skip_gram"));
  EXPECT_TRUE(IsTableModel("logistic_regression"));
  EXPECT_TRUE(IsTableModel("wide_and_deep"));
  EXPECT_FALSE(IsTableModel("mlp"));
}

TEST(TableWorkloadTest, WhatAKindNeedsIsNamed) {
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
  job.model.kind = "skip_gram";
  EXPECT_THAT(MakeTableWorkload(job, Purpose::kTrain),
              missing("model.embedding_dim"));
  job.model.kind = "wide_and_deep";
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

}  // namespace
}  // namespace lockstep
