// Jobs whose processes have certificates.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/rpc/security/transport/transport_security.h"
#include "common/status/status_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/scrape.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_certificates.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kJob[] = "lockstep://e2e/";
// What is wrong is told within this time, which is for a busy machine.
constexpr absl::Duration kSoon = absl::Minutes(1);

class SecureJobTest : public ::testing::Test {
 protected:
  // This process asks chiefs as an operator.
  SecureJobTest() {
    const std::string own = certificates_.Join("own");
    WriteTlsFiles(own, authority_.Files(absl::StrCat(kJob, "operator/steer")));
    SetOwnSecurity(TransportSecurity::Load({own, ""}).value());
  }
  ~SecureJobTest() override { SetOwnSecurity(nullptr); }

  std::string DirectoryOf(const std::string& job, int index) const {
    return certificates_.Join(absl::StrCat(job, "-", index));
  }

  void Issue(const std::string& job, int index,
             const Validity& validity = TestAuthority::Valid()) {
    const std::string name = absl::StrCat(kJob, job, "/", index);
    WriteTlsFiles(DirectoryOf(job, index),
                  authority_.FilesOf(authority_.Issue(name, validity)));
  }

  // Gives each task its certificate.
  void Secure(TrainingJob& job) {
    for (const auto& [type, index] : job.Tasks()) {
      Issue(type, index);
      job.cluster().AddArgument(
          type, index, "--tls_dir=" + certificates_.path() + "/{role}-{index}");
    }
  }

  const TestAuthority authority_;
  const TempDir certificates_;
};

TrainingJob::Options Small(int64_t steps) {
  return {.workers = 2,
          .evaluator = true,
          .set = {absl::StrCat("train_steps=", steps),
                  "checkpoint.every_steps=50", "checkpoint.keep=1"}};
}

TEST_F(SecureJobTest, TrainsToTheSameBitsAsWithoutCertificates) {
  auto plain = TrainingJob::Make(Small(100));
  ASSERT_THAT(plain->Run(), IsOk());
  auto secure = TrainingJob::Make(Small(100));
  Secure(*secure);
  ASSERT_THAT(secure->Run(), IsOk());
  ExpectSameBits(plain->checkpoints(), secure->checkpoints(), 100);
}

// Waits until each task has read `renewals` certificates after its first one.
void ExpectRenewals(TrainingJob& job, int renewals) {
  const absl::Time end = absl::Now() + kSoon;
  for (const auto& [type, index] : job.Tasks()) {
    int read = 0;
    while (read < renewals && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(50));
      const std::string log = job.cluster().ReadLog(type, index).value_or("");
      const std::vector<absl::string_view> between =
          absl::StrSplit(log, "uses new certificates");
      read = static_cast<int>(between.size()) - 1;
    }
    ASSERT_GE(read, renewals) << type << " " << index;
  }
}

TEST_F(SecureJobTest, TenRenewalsOfEveryCertificateLoseNoStep) {
  auto options = Small(1'000'000);
  options.more_args = {"--shared_memory=off"};
  auto job = TrainingJob::Make(options);
  Secure(*job);
  ASSERT_THAT(job->StartAll(), IsOk());
  int64_t step = 20;
  for (int renewal = 0; renewal < 10; ++renewal) {
    ASSERT_THAT(job->WaitForStep(step), IsOk());
    for (const auto& [type, index] : job->Tasks()) Issue(type, index);
    ASSERT_NO_FATAL_FAILURE(ExpectRenewals(*job, renewal + 1));
    const auto status = job->GetStatus();
    ASSERT_OK(status);
    EXPECT_EQ(status->losses.steps_redone, 0);
    EXPECT_EQ(status->losses.recoveries, 0);
    step = status->step + 1;
  }
  EXPECT_THAT(job->WaitForStep(step), IsOk());
}

// Longer than a line of a private key, and than anything that two texts share.
std::vector<std::string> LinesOfKey(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.size() > 40) lines.push_back(line);
  }
  EXPECT_FALSE(lines.empty()) << path;
  return lines;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(SecureJobTest, KeysAreInNoLogStatusCheckpointOrCommandLine) {
  auto options = Small(1'000'000);
  options.set.push_back("checkpoint.every_steps=10");
  auto job = TrainingJob::Make(options);
  Secure(*job);
  for (const auto& [type, index] : job->Tasks()) {
    job->cluster().AddArgument(type, index, "--log_level=debug");
  }
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(
      job->cluster().WaitForLog("chief", 0, "checkpoint of step", kPatience),
      IsOk());
  std::string all;
  for (const auto& [type, index] : job->Tasks()) {
    absl::StrAppend(&all, job->cluster().ReadLog(type, index).value());
    const pid_t pid = job->cluster().Process(type, index).value()->pid();
    absl::StrAppend(&all, Contents(absl::StrCat("/proc/", pid, "/cmdline")),
                    Contents(absl::StrCat("/proc/", pid, "/environ")));
  }
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(job->checkpoints())) {
    if (entry.is_regular_file()) absl::StrAppend(&all, Contents(entry.path()));
  }
  const auto status = job->GetStatus();
  ASSERT_OK(status);
  absl::StrAppend(&all, FormatStatusJson(*status, 2));
  EXPECT_THAT(all, HasSubstr("checkpoint of step"));
  for (const auto& [type, index] : job->Tasks()) {
    for (const std::string& line :
         LinesOfKey(DirectoryOf(type, index) + "/tls.key")) {
      EXPECT_FALSE(absl::StrContains(all, line)) << type << " " << index;
    }
  }
}

TEST_F(SecureJobTest, MemberIsKilledAndComesBack) {
  auto job = TrainingJob::Make(Small(3000));
  Secure(*job);
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(20), IsOk());
  for (const char* type : {"worker", "ps"}) {
    ASSERT_THAT(job->cluster().Kill(type, 1), IsOk());
    ASSERT_THAT(job->cluster().Start(type, 1), IsOk());
  }
  EXPECT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
}

TEST_F(SecureJobTest, ExpiredCertificateIsNamedByItsOwner) {
  auto job = TrainingJob::Make(Small(50));
  Secure(*job);
  const absl::Time now = absl::Now();
  Issue("worker", 1, {now - absl::Hours(2), now - absl::Minutes(5)});
  ASSERT_THAT(job->cluster().Start("worker", 1), IsOk());
  EXPECT_THAT(
      job->cluster().WaitForLog("worker", 1, "expired 5 min ago", kSoon),
      IsOk());
}

TEST_F(SecureJobTest, CertificateOfAnotherTaskIsNamedAtTheStart) {
  auto job = TrainingJob::Make(Small(50));
  Secure(*job);
  WriteTlsFiles(DirectoryOf("ps", 0),
                authority_.Files(absl::StrCat(kJob, "worker/0")));
  ASSERT_THAT(job->cluster().Start("ps", 0), IsOk());
  EXPECT_THAT(job->cluster().Wait("ps", 0, kPatience),
              IsOkAndHolds(cli::TaskExit{.code = 2}));
  EXPECT_THAT(
      job->cluster().ReadLog("ps", 0),
      IsOkAndHolds(AllOf(
          HasSubstr(absl::StrCat("the certificate in ", DirectoryOf("ps", 0),
                                 " is that of worker 0 of job e2e, and this "
                                 "process is ps 0; it needs a certificate with "
                                 "the name lockstep://e2e/ps/0")),
          HasSubstr("lockstep certs make --only ps-0"))));
}

TEST_F(SecureJobTest, HostOfTheChiefNeedsTheNameOfTheChief) {
  auto options = Small(50);
  options.chief = false;
  auto job = TrainingJob::Make(options);
  Secure(*job);
  ASSERT_THAT(job->cluster().Start("worker", 0), IsOk());
  EXPECT_THAT(job->cluster().Wait("worker", 0, kPatience),
              IsOkAndHolds(cli::TaskExit{.code = 2}));
  EXPECT_THAT(job->cluster().ReadLog("worker", 0),
              IsOkAndHolds(HasSubstr(
                  "is that of worker 0 of job e2e, and this process is worker "
                  "0, which hosts the chief; it needs a certificate with the "
                  "name lockstep://e2e/chief/0")));
}

// The figure of a metric in the text that a task answers to a scrape, or 0.
double FigureOf(const std::string& metrics, const std::string& name) {
  double figure = 0;
  for (const absl::string_view line : absl::StrSplit(metrics, '\n')) {
    if (!absl::StartsWith(line, name + "{")) continue;
    if (absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &figure)) break;
  }
  return figure;
}

TEST_F(SecureJobTest, MemberOfAnotherAuthorityIsNamedInStatusLogAndMetrics) {
  auto job = TrainingJob::Make(Small(1000));
  Secure(*job);
  job->cluster().AddArgument("chief", 0, "--status_address=127.0.0.1:0");
  const TestAuthority stranger("stranger");
  TlsFiles files = stranger.Files(absl::StrCat(kJob, "worker/1"));
  files.authorities += authority_.certificate();
  WriteTlsFiles(DirectoryOf("worker", 1), files);
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_OK(job->GetStatus());
  const absl::Time end = absl::Now() + kSoon;
  std::vector<std::string> troubles;
  while (troubles.empty() && absl::Now() < end) {
    const auto status = job->TryStatus();
    if (status.ok()) troubles = status->security_troubles;
    absl::SleepFor(absl::Milliseconds(100));
  }
  const std::string trouble =
      "worker/1 is not signed by an authority of ca.crt";
  EXPECT_THAT(troubles, Contains(HasSubstr(trouble)));
  EXPECT_OK(job->cluster().WaitForLog("chief", 0, trouble, kSoon));
  const std::string metrics = Scrape(*job, "chief", 0);
  EXPECT_GT(FigureOf(metrics, "lockstep_tls_handshake_failures_total"), 0);
  EXPECT_GT(FigureOf(metrics, "lockstep_security_troubles"), 0);
}

// The process goes on with the last good files.
TEST_F(SecureJobTest, FilesThatDoNotFitAreInMetricsSoon) {
  auto job = TrainingJob::Make(Small(1'000'000));
  Secure(*job);
  job->cluster().AddArgument("chief", 0, "--status_address=127.0.0.1:0");
  ASSERT_THAT(job->cluster().Start("chief", 0), IsOk());
  const std::string metric = "lockstep_security_troubles";
  EXPECT_EQ(FigureOf(Scrape(*job, "chief", 0), metric), 0);

  WriteText(DirectoryOf("chief", 0) + "/tls.key",
            authority_.Issue(absl::StrCat(kJob, "chief/0")).key, 0600);
  const absl::Time end = absl::Now() + kSoon;
  double troubles = 0;
  while (troubles < 1 && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(100));
    troubles = FigureOf(Scrape(*job, "chief", 0), metric);
  }
  EXPECT_GE(troubles, 1);
}

}  // namespace
}  // namespace lockstep::testing
