#include "chief/summary/event_files.h"

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/records/tfrecord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/tensorboard_event.pb.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::TempDir;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr char kName[] = "/events.out.tfevents.0000001000000000.lockstep";
const absl::Time kStarted = absl::FromUnixSeconds(1000);

// One word for each event: "version", "back@STEP", "parameters", or
// "TAG=VALUE@STEP".
std::vector<std::string> EventsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  const std::string whole = bytes.str();
  TfRecordReader reader(whole);
  std::vector<std::string> words;
  while (true) {
    const auto record = reader.Next();
    EXPECT_OK(record);
    if (!record.ok() || !record->has_value()) return words;
    v1::TensorBoardEvent event;
    EXPECT_TRUE(event.ParseFromString(std::string(**record)));
    if (event.file_version() == "brain.Event:2") words.push_back("version");
    if (event.session_log().status() == v1::TensorBoardSession::START) {
      words.push_back(absl::StrCat("back@", event.step()));
    }
    for (const v1::TensorBoardValue& value : event.summary().value()) {
      // TensorBoard passes over a value that is not there.
      EXPECT_NE(value.what_case(), v1::TensorBoardValue::WHAT_NOT_SET);
      words.push_back(value.has_metadata()
                          ? "parameters"
                          : absl::StrCat(value.tag(), "=", value.simple_value(),
                                         "@", event.step()));
    }
  }
}

SummaryPoints Loss(const std::string& run, int64_t step, double loss) {
  return {run, step, {{"loss", loss}}};
}

TEST(EventFilesTest, EachRunHasAFileThatBeginsWhereTheJobDoes) {
  const TempDir dir;
  EventFiles files(dir.path() + "/new/s", kStarted, {});
  ASSERT_OK(files.Append({Loss("worker_1", 5, 0), Loss("", 5, 1)}, kStarted));
  ASSERT_OK(files.Append({Loss("", 9, 0.5)}, kStarted));
  EXPECT_THAT(
      EventsOf(dir.path() + "/new/s" + kName),
      ElementsAre("version", "back@5", "parameters", "loss=1@5", "loss=0.5@9"));
  EXPECT_THAT(EventsOf(dir.path() + "/new/s/worker_1" + kName),
              ElementsAre("version", "back@5", "loss=0@5"));
}

TEST(EventFilesTest, StepsThatAreMadeAgainVoidTheFirstOnes) {
  const TempDir dir;
  EventFiles files(dir.path(), kStarted, {});
  ASSERT_OK(files.Append({Loss("evaluator", 9, 1)}, kStarted));
  ASSERT_OK(files.Append({Loss("evaluator", 4, 2)}, kStarted));
  EXPECT_THAT(EventsOf(dir.path() + "/evaluator" + kName),
              ElementsAre("version", "back@9", "loss=1@9", "version", "back@4",
                          "loss=2@4"));
}

TEST(EventFilesTest, FilesOfProcessesBeforeAreLeftAsTheyAre) {
  const TempDir dir;
  EventFiles first(dir.path(), kStarted, {});
  ASSERT_OK(first.Append({Loss("", 1, 1)}, kStarted));
  const std::vector<std::string> events = EventsOf(dir.path() + kName);
  EventFiles second(dir.path(), kStarted + absl::Seconds(1), {});
  ASSERT_OK(second.Append({Loss("", 1, 1)}, kStarted));
  EXPECT_EQ(EventsOf(dir.path() + kName), events);
  EXPECT_THAT(EventsOf(dir.path() + "/events.out.tfevents.0000001001000000."
                                    "lockstep"),
              ElementsAre("version", "back@1", "parameters", "loss=1@1"));
}

// Otherwise TensorBoard would read the newest points first.
TEST(EventFilesTest, ClockThatWasSetBackDoesNotChangeTheOrderOfFiles) {
  const TempDir dir;
  EventFiles first(dir.path(), kStarted, {});
  ASSERT_OK(first.Append({Loss("", 8, 1)}, kStarted));
  const absl::Time earlier = kStarted - absl::Hours(100);
  EventFiles second(dir.path(), earlier, {});
  ASSERT_OK(second.Append({Loss("", 9, 1)}, earlier));
  EventFiles third(dir.path(), kStarted, {});
  ASSERT_OK(third.Append({Loss("", 10, 1)}, kStarted));
  EXPECT_THAT(EventsOf(dir.path() + "/events.out.tfevents.0000001000000001."
                                    "lockstep"),
              Contains("loss=1@9"));
  EXPECT_THAT(EventsOf(dir.path() + "/events.out.tfevents.0000001000000002."
                                    "lockstep"),
              Contains("loss=1@10"));
}

TEST(EventFilesTest, OtherFilesOfTheFolderDoNotMatter) {
  const TempDir dir;
  for (const char* name :
       {"/events.out.tfevents.2000000000.host", "/notes.txt",
        "/events.out.tfevents.99999999999999999999999.lockstep",
        "/events.out.tfevents.9999999999999999.lockstep"}) {
    std::ofstream(dir.path() + name) << "not of Lockstep";
  }
  EventFiles files(dir.path(), kStarted, {});
  ASSERT_OK(files.Append({Loss("", 1, 1)}, kStarted));
  EXPECT_THAT(EventsOf(dir.path() + kName), Contains("loss=1@1"));
}

TEST(EventFilesTest, AFolderThatCannotBeMadeIsNamedAndTriedAgain) {
  const TempDir dir;
  const std::string taken = dir.path() + "/s";
  std::ofstream(taken) << "a file";
  EventFiles files(taken, kStarted, {});
  const absl::Status status = files.Append({Loss("", 1, 1)}, kStarted);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(taken));
  ASSERT_EQ(std::remove(taken.c_str()), 0);
  EXPECT_OK(files.Append({Loss("", 2, 1)}, kStarted));
}

TEST(EventFilesTest, HyperParametersAreFieldsThatAreSetButNoPlaces) {
  JobConfig job;
  job.batch_size = 64;
  job.checkpoint.directory = "/secret/place";
  job.optimizer.kind = OptimizerConfig::Kind::kAdam;
  const auto parameters = HyperParameters(job);
  EXPECT_THAT(parameters, Contains(Pair("batch_size", "64")));
  EXPECT_THAT(parameters, Contains(Pair("optimizer.kind", "ADAM")));
  EXPECT_THAT(parameters, Contains(Pair("model.kind", "softmax")));
  EXPECT_THAT(parameters, Not(Contains(Key(StartsWith("checkpoint")))));
  EXPECT_THAT(parameters, Not(Contains(Key("name"))));
}

}  // namespace
}  // namespace lockstep::chief
