#include "deploy/cli/config/config_check_command.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "deploy/cli/run/port_reservation.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/process/forbid_threads.h"
#include "tests/unit/deploy/cli/config/command_fixture.h"

namespace lockstep::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kDocument[] =
    R"({"cluster":{"chief":["c:1"],"ps":["p:1"],"worker":["w:1"]},
        "task":{"type":"ps","index":0}})";

class ConfigCheckCommandTest : public testing::CommandTest {
 protected:
  ConfigCheckCommandTest() { unsetenv("TF_CONFIG"); }
  ~ConfigCheckCommandTest() override { unsetenv("TF_CONFIG"); }

  int Check(const std::vector<std::string>& args) {
    return Run<ConfigCheckCommand>("check", args);
  }
};

TEST_F(ConfigCheckCommandTest, ReadsTheEnvironment) {
  setenv("TF_CONFIG", kDocument, 1);

  EXPECT_EQ(Check({}), 0);
  EXPECT_THAT(Out(), AllOf(HasSubstr("TF_CONFIG: as ps 0 sees it\n"),
                           HasSubstr("no mistakes\n")));
}

TEST_F(ConfigCheckCommandTest, ReadsAFile) {
  const std::string path = Write("tf.json", kDocument);

  EXPECT_EQ(Check({"--tf_config", path}), 0);
  EXPECT_THAT(Out(), HasSubstr(path.substr(0, 20)));
}

TEST_F(ConfigCheckCommandTest, ReadsAnEnvironmentFile) {
  const std::string path =
      Write("env", absl::StrCat("# job\nTF_CONFIG='", kDocument, "'\n"));

  EXPECT_EQ(Check({"--environment_file", path}), 0);
  EXPECT_THAT(Out(), HasSubstr("TF_CONFIG: as ps 0 sees it\n"));
}

TEST_F(ConfigCheckCommandTest, WithoutTfConfigNoProgramStarts) {
  EXPECT_EQ(Check({}), 1);
  EXPECT_THAT(Out(), HasSubstr("mistake: TF_CONFIG is not set; set it"));
}

TEST_F(ConfigCheckCommandTest, AnEmptyDocumentIsAMistake) {
  setenv("TF_CONFIG", "{}", 1);

  EXPECT_EQ(Check({}), 1);
  EXPECT_THAT(Out(), HasSubstr("mistake: TF_CONFIG: there is no cluster"));
}

TEST_F(ConfigCheckCommandTest, AnEnvironmentFileMustHaveTfConfig) {
  const std::string none = Write("none", "PATH=/bin\n");
  const std::string small =
      Write("small", absl::StrCat("tf_config='", kDocument, "'\n"));
  const std::string shell =
      Write("shell", absl::StrCat("export TF_CONFIG='", kDocument, "'\n"));

  EXPECT_EQ(Check({"--environment_file", none}), 1);
  EXPECT_EQ(Check({"--environment_file", small}), 1);
  EXPECT_EQ(Check({"--environment_file", shell}), 1);
  const std::string out = Out();
  EXPECT_THAT(out, HasSubstr(absl::StrCat("mistake: ", none,
                                          ": TF_CONFIG is not set")));
  EXPECT_THAT(out, HasSubstr("tf_config is: write its name in capitals"));
  EXPECT_THAT(out, HasSubstr("line 1 begins with export, which only a shell "
                             "knows; remove that word"));
}

TEST_F(ConfigCheckCommandTest, ReadsAClusterWithoutATask) {
  const std::string path =
      Write("cluster.json", R"({"cluster":{"ps":["p:1"],"worker":["w:1"]}})");

  EXPECT_EQ(Check({"--cluster", path}), 0);
  EXPECT_THAT(Out(), HasSubstr("chief: worker 0"));
}

TEST_F(ConfigCheckCommandTest, AClusterFileWithoutItsOuterKeyIsAMistake) {
  const std::string path =
      Write("cluster.json", R"({"ps":["p:1"],"worker":["w:1"]})");

  EXPECT_EQ(Check({"--cluster", path}), 1);
  EXPECT_THAT(Out(), HasSubstr(absl::StrCat(
                         "mistake: ", path,
                         ": there is no cluster; write {\"cluster\": ")));
}

TEST_F(ConfigCheckCommandTest, AMistakeIsNamedByItsPath) {
  setenv("TF_CONFIG", R"({"cluster":{"worker":["w"]},
                          "task":{"type":"worker","index":0}})",
         1);

  EXPECT_EQ(Check({}), 1);
  EXPECT_EQ(Out(),
            "mistake: TF_CONFIG: cluster.worker[0] is \"w\": the port is "
            "missing; write \"host:port\"\n");
}

TEST_F(ConfigCheckCommandTest, EveryMistakeHasALine) {
  setenv("TF_CONFIG", R"({"cluster":{"ps":["p:0"],"worker":["w"]},
                          "task":{"type":"wrker","index":0}})",
         1);

  EXPECT_EQ(Check({}), 1);
  EXPECT_THAT(Out(),
              AllOf(HasSubstr("mistake: TF_CONFIG: task.type is \"wrker\""),
                    HasSubstr("\nmistake: TF_CONFIG: cluster.ps[0] is"),
                    HasSubstr("\nmistake: TF_CONFIG: cluster.worker[0] is")));
}

TEST_F(ConfigCheckCommandTest, OnlyOneSourceMayBeGiven) {
  EXPECT_EQ(Check({"--tf_config", "a", "--cluster", "b"}), 2);
  EXPECT_THAT(Err(), HasSubstr("2 of --tf_config, --environment_file and "
                               "--cluster are given"));
}

TEST_F(ConfigCheckCommandTest, AMissingFileIsNamed) {
  EXPECT_EQ(Check({"--environment_file", "/nowhere/env"}), 1);
  EXPECT_THAT(Out(), HasSubstr("mistake: --environment_file /nowhere/env: "));
}

TEST_F(ConfigCheckCommandTest, ConnectNeedsPorts) {
  const std::string path =
      Write("cluster.json", R"({"cluster": {"ps": ["127.0.0.1:0"],
                                            "worker": ["127.0.0.1:0"]}})");

  EXPECT_EQ(Check({"--cluster", path}), 0);
  EXPECT_EQ(Check({"--cluster", path, "--connect"}), 1);
  EXPECT_THAT(Out(),
              HasSubstr("cluster.ps[0] is \"127.0.0.1:0\": no port; `lockstep "
                        "run` chooses one for its tasks: leave --connect out"));
}

TEST_F(ConfigCheckCommandTest, ConnectNamesTheTaskThatRefuses) {
  const absl::StatusOr<PortReservation> port = PortReservation::Create();
  ASSERT_OK(port);
  const std::string address = absl::StrCat("127.0.0.1:", port->port());
  setenv("TF_CONFIG",
         absl::StrCat("{\"cluster\":{\"ps\":[\"", address,
                      "\"],\"worker\":[\"w:1\"]},"
                      "\"task\":{\"type\":\"worker\",\"index\":0}}")
             .c_str(),
         1);

  EXPECT_EQ(Check({"--connect"}), 1);
  const std::string out = Out();
  EXPECT_THAT(out, HasSubstr("ps_server  refused"));
  EXPECT_THAT(out, HasSubstr(absl::StrCat("mistake: TF_CONFIG: cluster.ps[0] "
                                          "is \"",
                                          address, "\":")));
}

TEST_F(ConfigCheckCommandTest, ConnectTriesAllWhereNoThreadCanBeMade) {
  const absl::StatusOr<PortReservation> chief = PortReservation::Create();
  const absl::StatusOr<PortReservation> ps = PortReservation::Create();
  ASSERT_OK(chief);
  ASSERT_OK(ps);
  setenv("TF_CONFIG",
         absl::StrCat("{\"cluster\":{\"chief\":[\"127.0.0.1:", chief->port(),
                      "\"],\"ps\":[\"127.0.0.1:", ps->port(),
                      "\"],\"worker\":[\"w:1\"]},"
                      "\"task\":{\"type\":\"worker\",\"index\":0}}")
             .c_str(),
         1);

  EXPECT_EXIT(
      {
        ForbidThreads();
        const int code = Check({"--connect"});
        std::cerr << Out();
        _exit(code);
      },
      ::testing::ExitedWithCode(1),
      AllOf(HasSubstr("mistake: TF_CONFIG: cluster.chief[0] is"),
            HasSubstr("mistake: TF_CONFIG: cluster.ps[0] is")));
}

}  // namespace
}  // namespace lockstep::cli
