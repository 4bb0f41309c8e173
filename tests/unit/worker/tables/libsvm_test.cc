#include "worker/tables/libsvm.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/worker/data/files/idx_bytes.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr LibsvmOptions kOptions{1, 10};

TEST(LibsvmTest, ExamplesAreReadLineByLine) {
  SparseExamples examples;
  ASSERT_OK(
      ParseLibsvm("+1 1:0.5 10:-2e1\n-1 3:1 # a comment 4:1\n\n# only\n0\n",
                  "text", kOptions, examples));
  EXPECT_THAT(examples.labels, ElementsAre(true, false, false));
  EXPECT_THAT(examples.ends, ElementsAre(2, 3, 3));
  EXPECT_THAT(examples.features, ElementsAre(0, 9, 2));
  EXPECT_THAT(examples.values, ElementsAre(0.5f, -20, 1));
}

// Else all examples would be of one class, and the job would learn that.
TEST(LibsvmTest, TwoClassesThatAreNamedByOtherNumbersAreRefused) {
  SparseExamples examples;
  EXPECT_THAT(ParseLibsvm("1 1:0.5\n2 3:1\n", "text", kOptions, examples),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("text:2: "), HasSubstr("label is 2"))));
  EXPECT_TRUE(examples.labels.empty());
}

TEST(LibsvmTest, FeaturesMayBeInAnyOrder) {
  SparseExamples examples;
  ASSERT_OK(ParseLibsvm("1 7:7\t2:2  5:5\r\n", "text", kOptions, examples));
  EXPECT_THAT(examples.features, ElementsAre(1, 4, 6));
  EXPECT_THAT(examples.values, ElementsAre(2, 5, 7));
}

TEST(LibsvmTest, TheFirstFeatureMayBeNumberZero) {
  SparseExamples examples;
  ASSERT_OK(ParseLibsvm("1 0:1 9:2", "text", {0, 10}, examples));
  EXPECT_THAT(examples.features, ElementsAre(0, 9));
}

TEST(LibsvmTest, ValuesBelowTheRangeOfFloat32AreZero) {
  SparseExamples examples;
  ASSERT_OK(ParseLibsvm("1 3:1e-50 4:-1e-50 5:+1e-400 6:1e-40\n", "text",
                        kOptions, examples));
  EXPECT_THAT(examples.features, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(examples.values, ElementsAre(0, 0, 0, 1e-40f));
}

TEST(LibsvmTest, MalformedLinesAreNamedAndNothingIsTaken) {
  for (const char* line :
       {"x 1:1",       "1 1",       "1 :1",
        "1 1:",        "1 1:x",     "1 1:nan",
        "1 1:inf",     "nan",       "1 0:1",
        "1 11:1",      "1 -1:1",    "1 1:1:1",
        "1 1.5:1",     "1 3:1e50",  "1 3:-1e400",
        "1 3:1e-50x",  "1 2:1 2:1", "1 99999999999999999999:1",
        "1 qid:1 2:1", "1e999",     "+-1 1:1",
        "1 1:+-1",     "1 +-1:1",   "++1 1:1"}) {
    SparseExamples examples;
    EXPECT_THAT(
        ParseLibsvm(absl::StrCat("1 1:1\n", line, "\n"), "a.libsvm", kOptions,
                    examples),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a.libsvm:2: ")))
        << line;
    EXPECT_EQ(examples.size(), 0);
    EXPECT_TRUE(examples.features.empty());
  }
}

TEST(LibsvmTest, MessagesNameTheRange) {
  SparseExamples examples;
  EXPECT_THAT(ParseLibsvm("1 11:1", "a", kOptions, examples),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"11\""), HasSubstr("from 1 to 10"))));
}

TEST(LibsvmTest, FilesMayBeGzipped) {
  const std::string text = "1 1:1\n-1 2:1\n";
  const testing::TempDir dir;
  testing::WriteFile(dir.Join("plain"), {text.begin(), text.end()});
  testing::WriteFile(dir.Join("packed"),
                     testing::Gzip({text.begin(), text.end()}));
  for (const char* name : {"plain", "packed"}) {
    SparseExamples examples;
    ASSERT_OK(ReadLibsvmFile(dir.Join(name), kOptions, examples));
    EXPECT_EQ(examples.size(), 2);
  }
  SparseExamples examples;
  EXPECT_THAT(ReadLibsvmFile(dir.Join("none"), kOptions, examples),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none: ")));
}

}  // namespace
}  // namespace lockstep::worker
