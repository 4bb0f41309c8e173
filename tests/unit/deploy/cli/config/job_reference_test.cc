#include "deploy/cli/config/job_reference.h"

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/job/codec/job_config_codec.h"
#include "common/job/job_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/job_override.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::ApplyOverride;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

JobField Field(absl::string_view path) {
  JobField field = JobReference();
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    JobField next;
    for (JobField& child : field.fields) {
      if (child.name() == name) next = child;
    }
    EXPECT_EQ(next.name(), name);
    field = next;
  }
  return field;
}

void ExpectDocs(const JobField& field) {
  EXPECT_NE(field.doc, "") << field.path;
  EXPECT_NE(field.type, "value") << field.path;
  for (const auto& [name, doc] : field.values) {
    EXPECT_NE(doc, "") << field.path << ": " << name;
  }
  for (const JobField& child : field.fields) ExpectDocs(child);
}

TEST(JobReferenceTest, EveryFieldAndValueHasAText) {
  const JobField root = JobReference();
  ASSERT_GT(root.fields.size(), 20u);
  for (const JobField& field : root.fields) ExpectDocs(field);
}

TEST(JobReferenceTest, ATextIsThatOfItsField) {
  EXPECT_THAT(Field("model.hidden_units").doc,
              StartsWith("Width of each fully connected hidden layer"));
  EXPECT_EQ(Field("train_steps").doc,
            "The global step that ends training; > 0, required.");
  EXPECT_THAT(Field("model.features").doc, HasSubstr("table of weights; > 0"));
  EXPECT_THAT(Field("checkpoint.every").doc, StartsWith("Time from one"));
}

TEST(JobReferenceTest, AGroupSaysNothingTwice) {
  EXPECT_EQ(Field("model").doc, "The model that workers compute.");
  EXPECT_THAT(Field("checkpoint").doc, HasSubstr("writes one. Absent: no"));
}

TEST(JobReferenceTest, DefaultsAreThoseOfTheProgram) {
  EXPECT_EQ(Field("learning_rate").default_value, "0.01");
  EXPECT_EQ(Field("lease").default_value,
            absl::FormatDuration(JobConfig().lease));
  EXPECT_EQ(Field("mode").default_value, "STRICT");
  EXPECT_EQ(Field("model.kind").default_value, "\"softmax\"");
  EXPECT_EQ(Field("model.hidden_units").default_value, "");
  EXPECT_EQ(Field("checkpoint.every").default_value, "");
  EXPECT_EQ(Field("variable_optimizers.optimizer.kind").default_value, "");
}

TEST(JobReferenceTest, ANumberThatIsNotSetHasNoDefaultBesideItsText) {
  EXPECT_EQ(Field("train_steps").default_value, "");  // required
  EXPECT_EQ(Field("batch_size").default_value, "");
  EXPECT_EQ(Field("strategy.replicas_per_worker").default_value, "");
  EXPECT_EQ(Field("learning_rate_schedule.decay_steps").default_value, "");
  EXPECT_EQ(Field("checkpoint.keep").default_value, "5");
  EXPECT_EQ(Field("refuse_non_finite").default_value, "true");
}

TEST(JobReferenceTest, NamesHaveTheirValues) {
  EXPECT_THAT(Field("mode").values,
              ElementsAre(Pair("STRICT", HasSubstr("One set of workers")),
                          Pair("COMPATIBLE", HasSubstr("TensorFlow"))));
}

TEST(JobReferenceTest, WhatIsSettableCanBeSet) {
  EXPECT_TRUE(Field("model.hidden_units").settable);
  EXPECT_TRUE(Field("model.hidden_units").is_list);
  EXPECT_FALSE(Field("model").settable);
  EXPECT_FALSE(Field("variable_optimizers.variables").settable);
  JobConfig job;
  EXPECT_OK(ApplyOverride("checkpoint.every=60s", job));
  EXPECT_FALSE(ApplyOverride("variable_optimizers.variables=a", job).ok());
}

}  // namespace
}  // namespace lockstep::cli
