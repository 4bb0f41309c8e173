#include "common/job/codec/job_text_codec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "lockstep/v1/job.pb.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(JobTextCodecTest, FillsTheMessage) {
  v1::JobConfig proto;

  ASSERT_OK(ParseTextMessage("name: 'a' # a comment\n model { kind: 'mlp' }",
                             "job.txt", proto));

  EXPECT_EQ(proto.name(), "a");
  EXPECT_EQ(proto.model().kind(), "mlp");
}

TEST(JobTextCodecTest, EmptyTextIsAnEmptyMessage) {
  v1::JobConfig proto;
  proto.set_name("before");

  ASSERT_OK(ParseTextMessage("", "job.txt", proto));

  EXPECT_EQ(proto.name(), "");
}

TEST(JobTextCodecTest, AByteOrderMarkIsPassedOver) {
  v1::JobConfig proto;

  ASSERT_OK(ParseTextMessage("\xEF\xBB\xBFname: 'a'", "job.txt", proto));

  EXPECT_EQ(proto.name(), "a");
}

TEST(JobTextCodecTest, DurationsMayBeText) {
  v1::JobConfig proto;

  ASSERT_OK(ParseTextMessage(
      "checkpoint { every: \"1m\" } lease { seconds: 3 }", "job.txt", proto));

  EXPECT_EQ(proto.checkpoint().every().seconds(), 60);
  EXPECT_EQ(proto.lease().seconds(), 3);
}

TEST(JobTextCodecTest, QuotesInMessagesAreNotEscaped) {
  v1::JobConfig proto;

  const absl::Status status =
      ParseTextMessage("batch_size: 1 batch_size: 2", "job.txt", proto);

  EXPECT_THAT(status.message(), HasSubstr("\"batch_size\""));
  EXPECT_THAT(status.message(), Not(HasSubstr("\\")));
}

struct ErrorCase {
  std::string text;
  const char* message;
};

class JobTextErrorTest : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(JobTextErrorTest, NamesPlaceAndFix) {
  v1::JobConfig proto;

  EXPECT_THAT(ParseTextMessage(GetParam().text, "job.txt", proto),
              StatusIs(kInvalid, StartsWith(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    All, JobTextErrorTest,
    ::testing::Values(
        ErrorCase{"name: 'a'\ntrian_steps: 5",
                  "job.txt:2:12: lockstep.v1.JobConfig has no field "
                  "\"trian_steps\"; did you mean train_steps?"},
        ErrorCase{"checkpoint {\n  evry: {}\n}",
                  "job.txt:2:7: lockstep.v1.CheckpointConfig has no field "
                  "\"evry\"; did you mean every?"},
        ErrorCase{"checkpoint { zzzzzzzz: 1 }",
                  "job.txt:1:22: lockstep.v1.CheckpointConfig has no field "
                  "\"zzzzzzzz\"; known are directory, every_steps"},
        ErrorCase{"momentum: 0.9",
                  "job.txt:1:9: lockstep.v1.JobConfig has no field "
                  "\"momentum\"; put it into optimizer { ... }"},
        ErrorCase{"optimizer { learning_rate: 1 }",
                  "job.txt:1:26: lockstep.v1.OptimizerConfig has no field "
                  "\"learning_rate\"; put it outside of all groups"},
        ErrorCase{"directory: 'x'",
                  "job.txt:1:10: lockstep.v1.JobConfig has no field "
                  "\"directory\"; put it into checkpoint { ... } or summary "
                  "{ ... }"},
        ErrorCase{"mode: STRCT",
                  "job.txt:1:12: mode cannot be \"STRCT\"; did you mean "
                  "STRICT?"},
        ErrorCase{"optimizer { kind: ADM }",
                  "job.txt:1:23: kind cannot be \"ADM\"; did you mean ADAM?"},
        ErrorCase{"train_steps: 'x'", "job.txt:1:14: Expected integer"},
        ErrorCase{"train_steps: 1.5", "job.txt:1:14: Expected integer"},
        ErrorCase{"seed: -1", "job.txt:1:7: Expected integer"},
        ErrorCase{"train_steps: 99999999999999999999", "job.txt:1:14: Integer"},
        ErrorCase{"replicas_to_aggregate: 3000000000", "job.txt:1:24: Integer"},
        ErrorCase{"name: 'a", "job.txt:1:"},
        ErrorCase{"model {",
                  "job.txt:1:8: the text ends, but the '{' of line 1 is not "
                  "closed"},
        ErrorCase{"name: 'a'\nmodel {\n kind: 'mlp'\n",
                  "job.txt:4:1: the text ends, but the '{' of line 2"},
        ErrorCase{"name:", "job.txt:1:6: the text ends where a value"},
        ErrorCase{"lease: 'soon'", "job.txt:1:8: lease is \"soon\", but must"},
        ErrorCase{"}", "job.txt:1:1: "}, ErrorCase{"\xFF\xFE", "job.txt:1:1: "},
        ErrorCase{"batch_size: 1 batch_size: 2",
                  "job.txt:1:25: Non-repeated field"},
        ErrorCase{std::string("na\0me", 5), "job.txt:1:"}));

TEST(JobTextCodecTest, HugeTextIsRefusedUnread) {
  v1::JobConfig proto;

  EXPECT_THAT(ParseTextMessage(std::string(kMaxJobTextBytes + 1, '#'),
                               "job.txt", proto),
              StatusIs(kInvalid, HasSubstr("job.txt has 1048577 bytes")));
}

TEST(JobTextCodecTest, DeepTextIsRefused) {
  std::string text;
  for (int i = 0; i < 30'000; ++i) {
    absl::StrAppend(&text, "list_value { values { ");
  }
  google::protobuf::Value nested;

  EXPECT_THAT(ParseTextMessage(text, "job.txt", nested),
              StatusIs(kInvalid, HasSubstr("too deep")));
}

TEST(JobTextCodecTest, MessageIsShortAndPlain) {
  v1::JobConfig proto;
  const std::string text =
      absl::StrCat("train_steps: '", std::string(5000, 's'), "\x1b'");

  EXPECT_THAT(ParseTextMessage(text, "job.txt", proto),
              StatusIs(kInvalid, AllOf(Not(HasSubstr(std::string(200, 's'))),
                                       Not(HasSubstr("\x1b")))));
}

}  // namespace
}  // namespace lockstep
