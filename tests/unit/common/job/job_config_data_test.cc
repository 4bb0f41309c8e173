#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job/job_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

// What a job trains on and is scored with.
struct Kind {
  const char* trained;
  std::function<void(DataConfig&)> train;
  // Each sets one field, which is named first.
  std::vector<std::pair<const char*, std::function<void(DataConfig&)>>> rest;
};

std::vector<Kind> Kinds() {
  return {
      {"data.train_images",
       [](DataConfig& data) { data.train_images = data.train_labels = "i"; },
       {{"data.test_images", [](DataConfig& data) { data.test_images = "i"; }},
        {"data.test_labels",
         [](DataConfig& data) { data.test_labels = "i"; }}}},
      {"data.train_text",
       [](DataConfig& data) {
         data.train_text = "t";
         data.sequence_length = 8;
       },
       {{"data.test_text", [](DataConfig& data) { data.test_text = "t"; }}}},
      {"data.train_files",
       [](DataConfig& data) { data.train_files = {"f"}; },
       {{"data.test_files",
         [](DataConfig& data) { data.test_files = {"f"}; }}}},
  };
}

absl::Status Validate(const DataConfig& data) {
  JobConfig job;
  job.train_steps = 100;
  job.batch_size = 32;
  job.data = data;
  return ValidateJobConfig(job);
}

TEST(JobConfigDataTest, EachKindOfDataIsTakenWithItsOwnTestSet) {
  for (const Kind& kind : Kinds()) {
    DataConfig data;
    kind.train(data);
    EXPECT_OK(Validate(data)) << kind.trained;
    for (const auto& [field, set] : kind.rest) set(data);
    EXPECT_OK(Validate(data)) << kind.trained;
  }
}

// It would be ignored, or scored by a model that cannot read it.
TEST(JobConfigDataTest, TestSetOfAnotherKindIsRefused) {
  for (const Kind& kind : Kinds()) {
    for (const Kind& other : Kinds()) {
      if (kind.trained == std::string(other.trained)) continue;
      for (const auto& [field, set] : other.rest) {
        DataConfig data;
        kind.train(data);
        set(data);
        EXPECT_THAT(Validate(data),
                    StatusIs(kInvalid, HasSubstr(absl::StrCat(
                                           field,
                                           " is set, but the job trains "
                                           "on ",
                                           kind.trained, ";"))));
      }
    }
  }
}

TEST(JobConfigDataTest, JobTrainsOnOneKindOfData) {
  const std::vector<Kind> kinds = Kinds();
  for (size_t i = 0; i < kinds.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      DataConfig data;
      kinds[i].train(data);
      kinds[j].train(data);
      EXPECT_THAT(Validate(data),
                  StatusIs(kInvalid,
                           HasSubstr(absl::StrCat(kinds[j].trained,
                                                  " is set, but the job trains "
                                                  "on ",
                                                  kinds[i].trained, ";"))));
    }
  }
}

TEST(JobConfigDataTest, TestSetAloneIsNoData) {
  for (const Kind& kind : Kinds()) {
    DataConfig data;
    for (const auto& [field, set] : kind.rest) set(data);
    EXPECT_THAT(Validate(data),
                StatusIs(kInvalid, HasSubstr("data.train_images is missing")));
  }
}

TEST(JobConfigDataTest, EveryFileOfAListIsNamedByItsPlace) {
  DataConfig data;
  data.train_files = {"a", ""};
  EXPECT_THAT(Validate(data),
              StatusIs(kInvalid, HasSubstr("data.train_files[1] is empty")));
  data.train_files = {"a"};
  data.test_files = {"b", "c\nd"};
  EXPECT_THAT(
      Validate(data),
      StatusIs(kInvalid, HasSubstr("data.test_files[1] must be a path")));
}

TEST(JobConfigDataTest, FieldsOfAKindAreCheckedWhereItIsUsed) {
  DataConfig text;
  text.train_text = "t";
  EXPECT_THAT(Validate(text),
              StatusIs(kInvalid, HasSubstr("data.sequence_length is 0")));
  text.sequence_length = 65'537;
  EXPECT_THAT(Validate(text),
              StatusIs(kInvalid, HasSubstr("data.sequence_length is 65537")));
  text.sequence_length = 65'536;
  EXPECT_OK(Validate(text));

  DataConfig files;
  files.train_files = {"f"};
  files.index_base = 2;
  EXPECT_THAT(Validate(files),
              StatusIs(kInvalid, HasSubstr("data.index_base is 2")));
  files.index_base = 0;
  files.min_count = 0;
  EXPECT_THAT(Validate(files),
              StatusIs(kInvalid, HasSubstr("data.min_count is 0")));
}

TEST(JobConfigDataTest, ExternalWorkersNeedNoData) {
  const auto of_external = [](const DataConfig& data) {
    JobConfig job;
    job.train_steps = 100;
    job.batch_size = 32;
    job.model.kind = kExternalModel;
    job.data = data;
    return ValidateJobConfig(job);
  };
  EXPECT_OK(of_external({}));
  DataConfig pictures;
  pictures.train_images = "images";
  EXPECT_THAT(of_external(pictures),
              StatusIs(kInvalid, HasSubstr("data.train_labels is missing")));
  DataConfig backwards;
  backwards.epochs = -1;
  EXPECT_THAT(of_external(backwards),
              StatusIs(kInvalid, HasSubstr("data.epochs is -1")));
}

TEST(DataConfigTest, WhatIsScoredIsPicturesTextOrFiles) {
  EXPECT_FALSE(DataConfig().has_test_set());
  for (const auto field : {&DataConfig::test_text, &DataConfig::test_images}) {
    DataConfig data;
    data.*field = "given";
    EXPECT_TRUE(data.has_test_set());
  }
  DataConfig data;
  data.test_files = {"file"};
  EXPECT_TRUE(data.has_test_set());
}

}  // namespace
}  // namespace lockstep
