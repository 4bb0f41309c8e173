#include "common/flags/help_formatter.h"

#include <memory>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kLongText[] =
    "Where this process keeps its state, which is removed when the job is "
    "done, and which has to be a memory file system for full speed.";

class HelpFormatterTest : public ::testing::Test {
 protected:
  HelpFormatterTest() {
    app_.formatter(std::make_shared<HelpFormatter>(80));
    app_.add_option("--dir", value_, kLongText);
    app_.add_option("--a_flag_with_a_rather_long_name", value_, kLongText);
  }

  std::string value_;
  CLI::App app_{kLongText, "program"};
};

TEST_F(HelpFormatterTest, NoLineIsLongerThanTheWindow) {
  app_.add_subcommand("launch", kLongText);
  app_.footer(kLongText);
  app_.add_option("file", value_, kLongText)->check(CLI::ExistingFile);
  app_.add_option("--kind", value_, kLongText)
      ->check(CLI::IsMember({"gradient_descent", "momentum", "adam", "adagrad",
                             "rmsprop", "something_else_altogether"}));

  for (const size_t width : {80, 60, 40}) {
    app_.formatter(std::make_shared<HelpFormatter>(width));
    std::istringstream help(app_.help());
    for (std::string line; std::getline(help, line);) {
      EXPECT_THAT(line, SizeIs(testing::Le(width)));
    }
  }
}

TEST_F(HelpFormatterTest, ExplanationKeepsToItsColumn) {
  EXPECT_THAT(
      app_.help(),
      HasSubstr("  --dir TEXT              Where this process keeps its state, "
                "which is removed\n"
                "                          when the job is done, and which has "
                "to be a memory\n"
                "                          file system for full speed.\n"));
}

TEST_F(HelpFormatterTest, LongNameHasALineOfItsOwn) {
  EXPECT_THAT(app_.help(),
              HasSubstr("  --a_flag_with_a_rather_long_name TEXT\n"
                        "                          Where this process"));
}

TEST_F(HelpFormatterTest, FlagWithoutExplanationIsStillListed) {
  app_.add_option("--bare", value_);

  EXPECT_THAT(app_.help(), HasSubstr("\n  --bare TEXT\n"));
}

TEST_F(HelpFormatterTest, SubcommandsAreListedWithTheirExplanation) {
  app_.add_subcommand("launch", "Starts a job on this machine.");

  EXPECT_THAT(app_.help(),
              HasSubstr("  launch                  Starts a job on this "
                        "machine.\n"));
}

}  // namespace
}  // namespace lockstep
