#include "common/job/codec/job_override_codec.h"

#include <string>

#include "common/job/codec/auto_number_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/job.pb.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

v1::JobConfig With(absl::string_view assignment) {
  v1::JobConfig proto;
  EXPECT_OK(SetField(assignment, proto));
  return proto;
}

TEST(JobOverrideCodecTest, SetsFieldsOfEveryType) {
  EXPECT_EQ(With("replicas_to_aggregate=3").replicas_to_aggregate(), 3);
  EXPECT_EQ(With("train_steps=5000000000").train_steps(), 5'000'000'000);
  EXPECT_EQ(With("seed=18446744073709551615").seed(), ~uint64_t{0});
  EXPECT_EQ(With("learning_rate=0.05").learning_rate(), 0.05);
  EXPECT_TRUE(With("optimizer.use_nesterov=true").optimizer().use_nesterov());
  EXPECT_TRUE(With("refuse_non_finite=false").has_refuse_non_finite());
  EXPECT_EQ(With("name=a=b").name(), "a=b");
  EXPECT_EQ(With("model.kind=").model().kind(), "");
}

TEST(JobOverrideCodecTest, EnumerationsGoByNameInAnyCase) {
  EXPECT_EQ(With("mode=COMPATIBLE").mode(), v1::COMPATIBLE);
  EXPECT_EQ(With("mode=strict").mode(), v1::STRICT);
  EXPECT_EQ(With("optimizer.kind=Adam").optimizer().kind(),
            v1::OptimizerConfig::ADAM);
}

TEST(JobOverrideCodecTest, OnlyTheGradientsOfAStepMayBeAuto) {
  EXPECT_EQ(With("replicas_to_aggregate=AUTO").replicas_to_aggregate(),
            kAutoNumber);
  v1::JobConfig proto;
  EXPECT_THAT(SetField("total_num_replicas=AUTO", proto),
              StatusIs(kInvalid, StartsWith("total_num_replicas is \"AUTO\"")));
  EXPECT_EQ(With("replicas_to_aggregate=auto").replicas_to_aggregate(),
            kAutoNumber);
}

TEST(JobOverrideCodecTest, DurationsHaveAUnit) {
  EXPECT_EQ(With("lease=60s").lease().seconds(), 60);
  EXPECT_EQ(With("lease=1500ms").lease().nanos(), 500'000'000);
  EXPECT_EQ(With("checkpoint.every=1h30m").checkpoint().every().seconds(),
            5400);
  EXPECT_TRUE(With("checkpoint.every=0").checkpoint().has_every());
}

TEST(JobOverrideCodecTest, ListsAreReplacedWhole) {
  v1::JobConfig proto;
  proto.mutable_model()->add_hidden_units(7);

  ASSERT_OK(SetField("model.hidden_units=128,64", proto));
  ASSERT_OK(SetField("learning_rate_schedule.values=0.1,1e-2", proto));

  EXPECT_THAT(proto.model().hidden_units(), ElementsAre(128, 64));
  EXPECT_THAT(proto.learning_rate_schedule().values(), ElementsAre(0.1, 0.01));

  ASSERT_OK(SetField("model.hidden_units=[ 64, 32 ]", proto));

  EXPECT_THAT(proto.model().hidden_units(), ElementsAre(64, 32));

  ASSERT_OK(SetField("model.categorical=[\"a\", 'b', c]", proto));

  EXPECT_THAT(proto.model().categorical(), ElementsAre("a", "b", "c"));

  ASSERT_OK(SetField("model.hidden_units=[]", proto));

  EXPECT_THAT(proto.model().hidden_units(), IsEmpty());

  ASSERT_OK(SetField("model.hidden_units=", proto));

  EXPECT_THAT(proto.model().hidden_units(), IsEmpty());
}

TEST(JobOverrideCodecTest, OtherFieldsStay) {
  v1::JobConfig proto;
  proto.mutable_checkpoint()->set_keep(3);

  ASSERT_OK(SetField("checkpoint.every_steps=100", proto));

  EXPECT_EQ(proto.checkpoint().every_steps(), 100);
  EXPECT_EQ(proto.checkpoint().keep(), 3);
}

struct ErrorCase {
  std::string assignment;
  const char* message;
};

class OverrideErrorTest : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(OverrideErrorTest, NamesKeyValueAndFix) {
  v1::JobConfig proto;

  EXPECT_THAT(SetField(GetParam().assignment, proto),
              StatusIs(kInvalid, StartsWith(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    Keys, OverrideErrorTest,
    ::testing::Values(
        ErrorCase{"", "\"\" has no '='; write key=value"},
        ErrorCase{"seed", "\"seed\" has no '='"},
        ErrorCase{"=1", "unknown key \"\"; known are name, seed"},
        ErrorCase{"learning_rat=1",
                  "unknown key \"learning_rat\"; did you mean learning_rate?"},
        ErrorCase{"checkpoint.every_step=1",
                  "unknown key \"checkpoint.every_step\"; did you mean "
                  "checkpoint.every_steps?"},
        ErrorCase{"momentum=0.9",
                  "unknown key \"momentum\"; did you mean optimizer.momentum?"},
        // learning_rate_power is near, too.
        ErrorCase{"optimizer.learning_rate=1",
                  "unknown key \"optimizer.learning_rate\"; did you mean "
                  "learning_rate?"},
        ErrorCase{"directory=x",
                  "unknown key \"directory\"; did you mean "
                  "checkpoint.directory or summary.directory?"},
        ErrorCase{"checkpoint.=1", "unknown key \"checkpoint.\""},
        ErrorCase{".seed=1", "unknown key \"\""},
        ErrorCase{"checkpoint=1",
                  "checkpoint holds fields; set one of them: directory,"},
        ErrorCase{"seed.x=1",
                  "seed has no fields; set it to a whole number of 0 or more"},
        ErrorCase{"lease.seconds=1",
                  "lease has no fields; set it to a duration such as"},
        ErrorCase{"model.hidden_units.x=1",
                  "model.hidden_units has no "
                  "fields"}));

INSTANTIATE_TEST_SUITE_P(
    Values, OverrideErrorTest,
    ::testing::Values(
        ErrorCase{"seed=-1",
                  "seed is \"-1\", but must be a whole number of 0 or more"},
        ErrorCase{"seed=", "seed is \"\", but must be"},
        ErrorCase{"train_steps=1.5",
                  "train_steps is \"1.5\", but must be a whole number of 64 "
                  "bits"},
        ErrorCase{"total_num_replicas=3000000000",
                  "total_num_replicas is \"3000000000\", but must be a whole "
                  "number of 32 bits"},
        ErrorCase{"learning_rate=fast",
                  "learning_rate is \"fast\", but must be a number"},
        ErrorCase{"refuse_non_finite=maybe",
                  "refuse_non_finite is \"maybe\", but must be true or false"},
        ErrorCase{"mode=SYNC_MODE_UNSPECIFIED",
                  "mode is \"SYNC_MODE_UNSPECIFIED\", but must be one of "
                  "STRICT, COMPATIBLE"},
        ErrorCase{"mode=1", "mode is \"1\", but must be one of STRICT"},
        ErrorCase{"mode=strct",
                  "mode is \"strct\", but must be one of STRICT, COMPATIBLE; "
                  "did you mean STRICT?"},
        ErrorCase{"lease=60",
                  "lease is \"60\", but must be a duration such as \"60s\""},
        ErrorCase{"lease=inf", "lease is \"inf\", but must be a duration"},
        ErrorCase{"lease=-inf", "lease is \"-inf\""},
        ErrorCase{"model.hidden_units=1,,2",
                  "model.hidden_units is \"\", but must be a whole number"},
        ErrorCase{"model.hidden_units=1,x",
                  "model.hidden_units is \"x\", but must be"}));

}  // namespace
}  // namespace lockstep
