#include "common/flags/flag_parser.h"

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A program with its own flags and two sub-commands.
class FlagParserTest : public ::testing::Test {
 protected:
  FlagParserTest() {
    flags_.app().add_option("--tf_config", tf_config_, "The cluster, as JSON.");
    flags_.app()
        .add_option("--port", port_, "Where to listen.")
        ->check(CLI::Range(0, 65535));
    CLI::App* launch = flags_.app().add_subcommand("launch", "Starts a job.");
    launch->add_option("--workers", workers_, "How many.");
    flags_.app().add_subcommand("status", "Tells how a job goes.");
  }

  std::optional<int> Parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "/usr/bin/lockstep");
    return flags_.Parse(static_cast<int>(arguments.size()), arguments.data(),
                        out_, err_);
  }

  std::string tf_config_;
  int port_ = 0;
  int workers_ = 0;
  FlagParser flags_{"lockstep", "Runs a job on one machine."};
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(FlagParserTest, KnownFlagsAreReadAndTheProgramGoesOn) {
  EXPECT_EQ(Parse({"--tf_config", "{}", "--port=80", "launch", "--workers=2"}),
            std::nullopt);

  EXPECT_EQ(tf_config_, "{}");
  EXPECT_EQ(port_, 80);
  EXPECT_EQ(workers_, 2);
  EXPECT_EQ(out_.str() + err_.str(), "");
}

TEST_F(FlagParserTest, FlagsOfAUsersProgramAreToldToFollowTwoDashes) {
  std::vector<std::string> command;
  flags_.app().get_subcommand("launch")->add_option("command", command);

  EXPECT_EQ(Parse({"launch", "/usr/bin/python3", "-u", "train.py"}), 2);
  EXPECT_THAT(err_.str(),
              HasSubstr("unknown flag -u; if it is a flag of your own program, "
                        "put -- before that: -- /usr/bin/python3 ..."));

  EXPECT_EQ(Parse({"launch", "--wrkers=2"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("did you mean --workers?\n"));
}

TEST_F(FlagParserTest, ValueOfAMisspeltFlagIsNotTakenForAProgram) {
  std::vector<std::string> command;
  flags_.app().get_subcommand("launch")->add_option("command", command);

  EXPECT_EQ(Parse({"launch", "--wrkers", "2"}), 2);
  EXPECT_EQ(err_.str(),
            "lockstep: unknown flag --wrkers; did you mean --workers?\n"
            "Try 'lockstep launch --help'.\n");
}

TEST_F(FlagParserTest, HelpExplainsEachFlagAndLeavesWithZero) {
  EXPECT_EQ(Parse({"--help"}), 0);

  EXPECT_THAT(
      out_.str(),
      AllOf(StartsWith("Runs a job on one machine.\nUsage: lockstep"),
            HasSubstr("--tf_config TEXT"), HasSubstr("The cluster, as JSON."),
            HasSubstr("--version"), HasSubstr("Starts a job.")));
  EXPECT_EQ(err_.str(), "");
}

TEST_F(FlagParserTest, HelpOfASubcommandExplainsItsFlags) {
  EXPECT_EQ(Parse({"launch", "--help"}), 0);

  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("Usage: lockstep launch"),
                    HasSubstr("--workers INT"), HasSubstr("How many.")));
}

TEST_F(FlagParserTest, VersionNamesTheProgram) {
  EXPECT_EQ(Parse({"--version"}), 0);

  EXPECT_EQ(out_.str(), "lockstep 0.1.0\n");
}

TEST_F(FlagParserTest, UnknownFlagIsRefusedWithTheNearestOne) {
  EXPECT_EQ(Parse({"--tf_confg", "{}"}), kUsageExitCode);

  EXPECT_EQ(err_.str(),
            "lockstep: unknown flag --tf_confg; did you mean --tf_config?\n"
            "Try 'lockstep --help'.\n");
  EXPECT_EQ(out_.str(), "");
}

TEST_F(FlagParserTest, SingleDashDoesNotHideTheNearestFlag) {
  EXPECT_EQ(Parse({"-tf-config", "{}"}), kUsageExitCode);

  EXPECT_THAT(err_.str(), HasSubstr("did you mean --tf_config?"));
}

TEST_F(FlagParserTest, UnlikeAnyFlagGetsNoGuess) {
  EXPECT_EQ(Parse({"--frobnicate"}), kUsageExitCode);

  EXPECT_THAT(err_.str(), StartsWith("lockstep: unknown flag --frobnicate\n"));
}

TEST_F(FlagParserTest, TheMarkThatNoFlagsFollowIsNoFlag) {
  CLI::App* take = flags_.app().add_subcommand("remove", "Takes out a worker.");
  int worker = -1;
  take->add_option("worker", worker, "Which.")->required();

  EXPECT_EQ(Parse({"remove", "--"}), kUsageExitCode);
  EXPECT_THAT(err_.str(), HasSubstr("lockstep: worker is required"));
  EXPECT_EQ(Parse({"remove", "--", "2"}), std::nullopt);
  EXPECT_EQ(worker, 2);
}

TEST_F(FlagParserTest, MisspeltFlagBeforeAProgramIsNamed) {
  CLI::App* start = flags_.app().add_subcommand("start", "Starts a program.");
  std::vector<std::string> program;
  int workers = 0;
  start->add_option("--workers", workers, "How many.");
  start->add_option("program", program, "It and its arguments.");

  EXPECT_EQ(Parse({"start", "--wrkers", "2", "--", "train.py", "--fast"}),
            kUsageExitCode);
  EXPECT_THAT(err_.str(),
              HasSubstr("unknown flag --wrkers; did you mean --workers?"));
}

TEST_F(FlagParserTest, AProgramThatIsForgottenIsAskedFor) {
  CLI::App* start = flags_.app().add_subcommand("start", "Starts a program.");
  std::vector<std::string> program;
  start->add_option("program", program, "It and its arguments.");

  EXPECT_EQ(Parse({"start", "--"}), kUsageExitCode);
  EXPECT_THAT(err_.str(), HasSubstr("nothing follows --; give what"));
  EXPECT_EQ(Parse({"start"}), std::nullopt);
}

TEST_F(FlagParserTest, ValueOfAnUnknownFlagIsNotEchoed) {
  EXPECT_EQ(Parse({"--tf_confg=hunter2"}), kUsageExitCode);

  EXPECT_THAT(err_.str(), Not(HasSubstr("hunter2")));
}

TEST_F(FlagParserTest, UnknownFlagOfASubcommandIsComparedWithItsOwnFlags) {
  EXPECT_EQ(Parse({"launch", "--worker=2"}), kUsageExitCode);

  EXPECT_EQ(err_.str(),
            "lockstep: unknown flag --worker; did you mean --workers?\n"
            "Try 'lockstep launch --help'.\n");
}

TEST_F(FlagParserTest, UnknownSubcommandIsRefusedWithTheNearestOne) {
  EXPECT_EQ(Parse({"lanuch"}), kUsageExitCode);

  EXPECT_THAT(err_.str(),
              HasSubstr("unknown sub-command lanuch; did you mean launch?"));
}

TEST_F(FlagParserTest, ArgumentAfterASubcommandIsUnexpected) {
  EXPECT_EQ(Parse({"launch", "now"}), kUsageExitCode);

  EXPECT_THAT(err_.str(), HasSubstr("unexpected argument \"now\""));
}

TEST_F(FlagParserTest, EchoedArgumentIsOneShortLine) {
  const std::string long_word = "a\n\x1b" + std::string(5000, 'b');

  EXPECT_EQ(Parse({"launch", long_word.c_str()}), kUsageExitCode);

  EXPECT_THAT(err_.str(), HasSubstr("\"a??bbb"));
  EXPECT_LT(err_.str().size(), 200u);
}

TEST_F(FlagParserTest, MissingRequiredFlagIsNamed) {
  flags_.app().add_option("--job", tf_config_, "The job file.")->required();

  EXPECT_EQ(Parse({}), kUsageExitCode);

  EXPECT_THAT(err_.str(), HasSubstr("--job is required"));
}

TEST_F(FlagParserTest, MisspeltRequiredFlagIsExplainedAsMisspelt) {
  flags_.app().add_option("--job", tf_config_, "The job file.")->required();

  EXPECT_EQ(Parse({"--jbo", "x"}), kUsageExitCode);

  EXPECT_THAT(err_.str(), HasSubstr("unknown flag --jbo; did you mean --job?"));
}

TEST_F(FlagParserTest, ValueOfTheWrongTypeIsRefusedByName) {
  EXPECT_EQ(Parse({"--port", "http"}), kUsageExitCode);

  EXPECT_THAT(err_.str(), AllOf(HasSubstr("--port"), HasSubstr("http")));
}

TEST_F(FlagParserTest, ValueOutOfRangeIsRefusedWithTheRange) {
  EXPECT_EQ(Parse({"--port", "70000"}), kUsageExitCode);

  EXPECT_THAT(err_.str(), AllOf(HasSubstr("--port"), HasSubstr("70000"),
                                HasSubstr("65535")));
}

TEST_F(FlagParserTest, MissingValueAndRepeatedFlagAreRefused) {
  EXPECT_EQ(Parse({"--port"}), kUsageExitCode);
  EXPECT_EQ(Parse({"--port", "1", "--port", "2"}), kUsageExitCode);
}

TEST_F(FlagParserTest, EmptyValueDoesNotSwallowTheNextFlag) {
  EXPECT_EQ(Parse({"--tf_config=", "--port=80"}), kUsageExitCode);

  EXPECT_THAT(err_.str(), HasSubstr("flag --tf_config= has no value"));
  EXPECT_EQ(tf_config_, "");
}

TEST_F(FlagParserTest, ValueMayEndInAnEqualsSign) {
  EXPECT_EQ(Parse({"--tf_config=YQ=="}), std::nullopt);

  EXPECT_EQ(tf_config_, "YQ==");
}

TEST_F(FlagParserTest, RequiredSubcommandIsAskedFor) {
  flags_.app().require_subcommand(1);

  EXPECT_EQ(Parse({}), kUsageExitCode);

  EXPECT_THAT(err_.str(), HasSubstr("subcommand is required"));
}

TEST_F(FlagParserTest, ProgramCanRefuseAValueLater) {
  EXPECT_EQ(flags_.RefuseUsage("--tf_config is not JSON", err_),
            kUsageExitCode);

  EXPECT_EQ(err_.str(),
            "lockstep: --tf_config is not JSON\nTry 'lockstep --help'.\n");
}

}  // namespace
}  // namespace lockstep
