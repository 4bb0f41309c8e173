#include "common/program/main_support.h"

#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/stop_status.h"
#include "common/process/process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoadJobTest : public ::testing::Test {
 protected:
  LoadJobTest() {
    flags_.file = directory_.Join("job.textproto");
    std::ofstream(flags_.file)
        << "name: 'small' train_steps: 5 batch_size: 2\n"
           "data { train_images: 'x' train_labels: 'y' }\n";
  }

  const testing::TempDir directory_;
  JobFlags flags_;
};

TEST_F(LoadJobTest, LaterOverridesWin) {
  flags_.overrides = {"train_steps=7", "batch_size=3", "train_steps=9"};

  const auto job = LoadJob(flags_);

  ASSERT_OK(job);
  EXPECT_EQ(job->name, "small");
  EXPECT_EQ(job->train_steps, 9);
  EXPECT_EQ(job->batch_size, 3);
}

TEST_F(LoadJobTest, OverrideIsCheckedAsTheFileIs) {
  flags_.overrides = {"batch_size=0"};
  EXPECT_THAT(LoadJob(flags_), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("batch_size")));
}

TEST_F(LoadJobTest, OverridesMayGiveAllFieldsOfAnEmptyFile) {
  std::ofstream(flags_.file).close();
  EXPECT_THAT(LoadJob(flags_), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("train_steps is not given")));
  flags_.overrides = {"train_steps=7", "batch_size=3", "data.train_images=x",
                      "data.train_labels=y"};

  const auto job = LoadJob(flags_);

  ASSERT_OK(job);
  EXPECT_EQ(job->train_steps, 7);
}

TEST_F(LoadJobTest, FileWithoutAnEndIsRefused) {
  flags_.file = "/dev/zero";
  EXPECT_THAT(LoadJob(flags_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a job file may have 1048576")));
}

TEST_F(LoadJobTest, DirectoryIsNoJobFile) {
  flags_.file = directory_.Join("");
  EXPECT_THAT(LoadJob(flags_),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("cannot be read: Is a directory; check")));
}

TEST_F(LoadJobTest, MissingFileIsNamed) {
  flags_.file = directory_.Join("other");
  EXPECT_THAT(LoadJob(flags_),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("other cannot be read: No such file or")));
  EXPECT_THAT(LoadJob(JobFlags()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("--job")));
}

TEST(TlsDirTest, TheLaunchersDirectoryCountsWhereTheProgramNamesNone) {
  ASSERT_EQ(setenv("LOCKSTEP_TLS_DIR", "/tls/worker-0", 1), 0);
  EXPECT_EQ(OptionOfProgram("", "LOCKSTEP_TLS_DIR"), "/tls/worker-0");
  EXPECT_EQ(OptionOfProgram("/mine", "LOCKSTEP_TLS_DIR"), "/mine");
  ASSERT_EQ(unsetenv("LOCKSTEP_TLS_DIR"), 0);
  EXPECT_EQ(OptionOfProgram("", "LOCKSTEP_TLS_DIR"), "");
}

TEST(LogLevelTest, TheLaunchersLevelCountsWhereTheProgramNamesNone) {
  EXPECT_EQ(LogLevelOfProgram(""), "warning");
  ASSERT_EQ(setenv("LOCKSTEP_LOG_LEVEL", "debug", 1), 0);
  EXPECT_EQ(LogLevelOfProgram(""), "debug");
  EXPECT_EQ(LogLevelOfProgram("error"), "error");
  ASSERT_EQ(unsetenv("LOCKSTEP_LOG_LEVEL"), 0);
}

TEST(JobOfProgramTest, TheLaunchersJobCountsWhereTheProgramNamesNone) {
  ASSERT_EQ(setenv("LOCKSTEP_JOB", "/etc/job", 1), 0);
  ASSERT_EQ(setenv("LOCKSTEP_SET", "seed=1\nseed=2", 1), 0);
  ASSERT_EQ(setenv("LOCKSTEP_BEGIN", "17", 1), 0);

  const absl::StatusOr<JobFlags> job = JobOfProgram({});
  ASSERT_OK(job);
  EXPECT_EQ(job->file, "/etc/job");
  EXPECT_THAT(job->overrides, ElementsAre("seed=1", "seed=2"));
  EXPECT_EQ(job->beginning.step, 17);

  const absl::StatusOr<JobFlags> own = JobOfProgram({"/mine", {"seed=3"}, {}});
  ASSERT_OK(own);
  EXPECT_EQ(own->file, "/mine");
  EXPECT_THAT(own->overrides, ElementsAre("seed=1", "seed=2", "seed=3"));

  ASSERT_EQ(setenv("LOCKSTEP_BEGIN", "fresh", 1), 0);
  EXPECT_EQ(JobOfProgram({})->beginning.step, Beginning::kFresh);
  for (const char* wrong : {"-1", "new", "1.5"}) {
    ASSERT_EQ(setenv("LOCKSTEP_BEGIN", wrong, 1), 0);
    EXPECT_THAT(JobOfProgram({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("LOCKSTEP_BEGIN is \"")));
  }
  for (const char* name : {"LOCKSTEP_JOB", "LOCKSTEP_SET", "LOCKSTEP_BEGIN"}) {
    ASSERT_EQ(unsetenv(name), 0);
  }
  EXPECT_EQ(JobOfProgram({})->file, "");
}

TEST(CheckExposureTest, OtherHostsNeedCertificatesOrAnExplicitYes) {
  CommonFlags flags;
  EXPECT_THAT(CheckExposure(flags, "127.0.0.1:1"), IsOk());
  EXPECT_THAT(CheckExposure(flags, "0.0.0.0:1"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("0.0.0.0:1"), HasSubstr("--tls_dir"),
                             HasSubstr("--insecure"))));
  flags.insecure = true;
  EXPECT_THAT(CheckExposure(flags, "0.0.0.0:1"), IsOk());
  flags.insecure = false;
  flags.tls_dir = "/certificates";
  EXPECT_THAT(CheckExposure(flags, "0.0.0.0:1"), IsOk());
}

TEST(ServeStatusTest, AddressOfOtherHostsIsRefusedByTheNameOfItsFlag) {
  const auto cluster = Cluster::Make(TfConfig());
  ASSERT_OK(cluster);
  CommonFlags flags;
  flags.status_address = "0.0.0.0:0";
  EXPECT_THAT(ServeStatus(flags, *cluster, [] { return MetricFamilies(); }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--status_address")));
  flags.status_address = "";
  EXPECT_THAT(ServeStatus(flags, *cluster, nullptr), IsOk());
}

// Supervisors start a process again whose code says that it may help.
TEST(ExitCodesTest, PassingTroubleAsksForARestart) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), kExitDone);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("the chief is away")), kExitLost);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("broken")), kExitFailed);
  EXPECT_EQ(ExitCodeOf(absl::UnimplementedError("another")), kExitUsage);
  EXPECT_EQ(ExitCodeOf(StoppedStatus("an operator", /*hold=*/true)), kExitHeld);
  EXPECT_EQ(ExitCodeOf(StoppedStatus("SIGTERM", /*hold=*/false)), kExitStopped);
}

TEST(ExitCodesTest, OnlyAPortOrATaskInUseIsWorthAnotherStart) {
  EXPECT_EQ(Refuse(absl::UnavailableError("port 1 is in use")), kExitLost);
  EXPECT_EQ(Refuse(absl::AbortedError("another process runs it")), kExitLost);
  EXPECT_EQ(Refuse(absl::InvalidArgumentError("--job: no")), kExitUsage);
  EXPECT_EQ(Refuse(absl::NotFoundError("no file")), kExitUsage);
}

// A destructor that must not run.
struct Loud {
  ~Loud() { std::cerr << "destroyed"; }
};

TEST(EndProcessNowDeathTest, NoDestructorRuns) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static const Loud until_exit;
        const Loud here;
        EndProcessNow(absl::UnavailableError("the device is lost"));
      },
      ::testing::ExitedWithCode(kExitLost), ::testing::Not(HasSubstr("destr")));
}

// Prints the reasons of signals as they come.
class SignalGateDeathTest : public ::testing::Test {
 protected:
  SignalGateDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  [[noreturn]] static void Take(absl::Duration same) {
    std::signal(SIGHUP, SIG_DFL);  // nohup has tests ignore it
    {
      SignalGate gate(same);
      gate.SetHandler([](const std::string& reason) {
        std::cerr << reason << " came; " << std::flush;
      });
      kill(getpid(), SIGHUP);
      kill(getpid(), SIGHUP);
    }  // when both have been handled
    _exit(7);
  }
};

TEST_F(SignalGateDeathTest, TheSecondSignalEndsTheProcess) {
  EXPECT_EXIT(Take(absl::ZeroDuration()), ::testing::ExitedWithCode(129),
              "^SIGHUP came; $");
}

TEST_F(SignalGateDeathTest, ASignalThatIsSentTwiceIsOne) {
  EXPECT_EXIT(Take(absl::Hours(1)), ::testing::ExitedWithCode(7),
              "^SIGHUP came; $");
}

}  // namespace
}  // namespace lockstep
