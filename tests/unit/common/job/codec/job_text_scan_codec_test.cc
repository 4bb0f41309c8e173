#include "common/job/codec/job_text_scan_codec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/job.pb.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;

absl::StatusOr<JobTextScan> Scan(absl::string_view text) {
  return ScanJobText(text, "job.txt", *v1::JobConfig::descriptor());
}

std::string Text(absl::string_view text) {
  const auto scan = Scan(text);
  EXPECT_OK(scan);
  return scan.ok() ? scan->text : "";
}

TEST(JobTextScanCodecTest, TextOfADurationIsSpelledOut) {
  EXPECT_EQ(Text("lease: \"2s\" # two\n\tcheckpoint {\t every: '1500ms' }\n"),
            "lease: { seconds: 2 nanos: 0 } # two\n\tcheckpoint {\t every: "
            "{ seconds: 1 nanos: 500000000 } }\n");
  EXPECT_EQ(Text("max_wait \"1m\" lease: \"1h\""),
            "max_wait { seconds: 60 nanos: 0 } lease: { seconds: 3600 nanos: 0 "
            "}");
}

TEST(JobTextScanCodecTest, OtherTextStays) {
  for (const char* text :
       {"", "name: \"60s\"", "lease { seconds: 2 }", "lease: 2",
        "# every: \"60s\"\n", "name: 'lease' model { kind: \"1s\" }",
        "lease: \"unclosed", "}}{"}) {
    EXPECT_EQ(Text(text), text);
  }
}

TEST(JobTextScanCodecTest, TextThatIsNoDurationIsNamed) {
  EXPECT_THAT(Scan("name: 'a'\nlease: \"soon\""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "job.txt:2:8: lease is \"soon\", but must be a duration "
                       "such as \"60s\" or \"1500ms\""));
  EXPECT_THAT(Scan("lease: \"inf\""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("\"inf\", but must be")));
}

TEST(JobTextScanCodecTest, ABraceThatIsNotClosedHasItsLine) {
  EXPECT_EQ(Scan("a {\n b {\n }\n")->open_line, 1);
  EXPECT_EQ(Scan("a {\n b {\n")->open_line, 2);
  EXPECT_EQ(Scan("a { } # {\n")->open_line, 0);
}

}  // namespace
}  // namespace lockstep
