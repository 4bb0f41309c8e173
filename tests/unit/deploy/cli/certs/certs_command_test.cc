#include "deploy/cli/certs/certs_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::TempDir;
using ::lockstep::testing::TestAuthority;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CertsCommandTest : public ::testing::Test {
 protected:
  CertsCommandTest() {
    std::ofstream(directory_.Join("cluster.json"))
        << R"({"cluster": {"ps": ["localhost:0"], "chief": ["localhost:0"],
               "worker": ["localhost:0"]}})";
  }

  // Runs the command; its output is in `out_`, its errors in `err_`.
  int Run(const std::string& arguments) {
    CLI::App app;
    const CertsCommands command(app);
    app.parse("certs " + arguments);
    const std::string path = directory_.Join("out");
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    std::ostringstream err;
    int code = 0;
    {
      Terminal terminal(fd, nullptr, nullptr);
      code = command.Run(terminal, err);
    }
    close(fd);
    std::ifstream file(path);
    std::ostringstream out;
    out << file.rdbuf();
    out_ = out.str();
    err_ = err.str();
    return code;
  }
  int Make(const std::string& command, const std::string& more = "") {
    return Run(absl::StrCat(
        command, " --cluster ", directory_.Join("cluster.json"),
        " --job fashion --out ", directory_.Join("tls"), " ", more));
  }

  const TempDir directory_;
  std::string out_;
  std::string err_;
};

TEST_F(CertsCommandTest, MadeCertificatesPassTheCheck) {
  ASSERT_EQ(Make("make"), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("/tls/ps-0\n"), HasSubstr("/tls/worker-0"),
                          HasSubstr("/tls/operator-steer"),
                          HasSubstr("ca.key to a safe place")));
  EXPECT_EQ(Run("check --tls_dir " + directory_.Join("tls/ps-0")), 0) << out_;
  EXPECT_THAT(out_, AllOf(HasSubstr("lockstep://fashion/ps/0"),
                          HasSubstr("all is well")));
}

TEST_F(CertsCommandTest, ExpiryWithinFourteenDaysIsToldByShow) {
  ASSERT_EQ(Make("make", "--days 15"), 0) << err_;
  EXPECT_EQ(Run("show " + directory_.Join("tls/ps-0")), 0);
  ASSERT_EQ(Make("renew", "--days 13"), 0) << err_;
  EXPECT_EQ(Run("show " + directory_.Join("tls/ps-0")), 1);
  EXPECT_THAT(out_, HasSubstr("expires in 12 days"));
}

TEST_F(CertsCommandTest, NoRenewedCertificateOutlivesTheAuthority) {
  // Writes an authority that ends `left` from now into the set.
  const auto use = [&](absl::Duration left) {
    const auto authority = MakeAuthority(
        "short", {absl::Now() - absl::Hours(900), absl::Now() + left});
    ASSERT_TRUE(authority.ok());
    std::filesystem::create_directories(directory_.Join("tls"));
    testing::WriteText(directory_.Join("tls/ca.crt"), authority->certificate,
                       0644);
    testing::WriteText(directory_.Join("tls/ca.key"), authority->key, 0600);
  };
  use(absl::Hours(24 * 10));
  ASSERT_EQ(Make("renew", "--days 365"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("valid for only 9 days, until "));
  EXPECT_EQ(Run("show " + directory_.Join("tls/ps-0")), 1);
  EXPECT_THAT(out_, HasSubstr("expires in 9 days"));
  for (const absl::Duration ago : {absl::Hours(24), absl::Minutes(30)}) {
    use(-ago);
    EXPECT_EQ(Make("renew", "--days 365"), 2) << ago;
    EXPECT_THAT(err_, HasSubstr("name another --out for a new authority"));
  }
}

TEST_F(CertsCommandTest, OneDayIsNotCalledDays) {
  ASSERT_EQ(Make("make", "--days 1"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("valid for 1 day;"));
}

TEST_F(CertsCommandTest, OldAuthorityBesideTheOwnOneShortensNoCertificate) {
  ASSERT_EQ(Make("make"), 0) << err_;
  const auto old = MakeAuthority(
      "old", {absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(24 * 5)});
  ASSERT_TRUE(old.ok());
  std::ofstream(directory_.Join("tls/ca.crt"), std::ios::app)
      << old->certificate;
  ASSERT_EQ(Make("renew", "--days 30"), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("valid for 30 days;"),
                          Not(HasSubstr("makes a new authority"))));
  Run("show " + directory_.Join("tls/ps-0"));
  EXPECT_THAT(out_, HasSubstr("ca.crt   until "));
  EXPECT_THAT(out_, HasSubstr("expires in 4 days"));
}

TEST_F(CertsCommandTest, AuthorityThatEndsSoonIsToldByShowAndCheck) {
  const TestAuthority authority;
  TlsFiles files = authority.Files("worker/1");
  const std::string directory = directory_.Join("pair");
  testing::WriteTlsFiles(directory, files);
  EXPECT_EQ(Run("show " + directory), 0) << out_;
  const auto other = MakeAuthority(
      "other",
      {absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(24 * 13)});
  ASSERT_TRUE(other.ok());
  files.authorities += other->certificate;
  testing::WriteTlsFiles(directory, files);
  EXPECT_EQ(Run("show " + directory), 1);
  EXPECT_THAT(out_, AllOf(HasSubstr("ca.crt   until "),
                          HasSubstr("expires in 12 days")));
  EXPECT_EQ(Run("check --tls_dir " + directory), 1);
  EXPECT_THAT(out_, HasSubstr("expires in 12 days"));
}

TEST_F(CertsCommandTest, ShowTakesAWholeSetAndTheFlagOfOtherCommands) {
  ASSERT_EQ(Make("make"), 0) << err_;
  EXPECT_EQ(Run("show " + directory_.Join("tls")), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("lockstep://fashion/ps/0"),
                          HasSubstr("lockstep://fashion/chief/0"),
                          HasSubstr("lockstep://fashion/operator/read")));
  EXPECT_THAT(out_, Not(HasSubstr("/.")));
  EXPECT_EQ(Run("show --tls_dir " + directory_.Join("tls/ps-0")), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("lockstep://fashion/ps/0"),
                          Not(HasSubstr("lockstep://fashion/chief/0"))));
  EXPECT_EQ(Run("show " + directory_.path()), 2);
  EXPECT_THAT(err_, HasSubstr(directory_.Join("tls.crt")));
}

TEST_F(CertsCommandTest, EvaluatorOutsideOfTheClusterIsMadeAndRenewed) {
  const std::string certificate = directory_.Join("tls/evaluator-0/tls.crt");
  const auto text = [&] {
    std::ostringstream all;
    all << std::ifstream(certificate).rdbuf();
    return all.str();
  };
  ASSERT_EQ(Make("make"), 0) << err_;
  EXPECT_THAT(out_, Not(HasSubstr("evaluator")));
  ASSERT_EQ(Make("make", "--only evaluator-0"), 0) << err_;
  EXPECT_EQ(Run("check --tls_dir " + directory_.Join("tls/evaluator-0")), 0);
  EXPECT_THAT(out_, HasSubstr("lockstep://fashion/evaluator/0"));
  const std::string first = text();
  ASSERT_EQ(Make("renew"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("/tls/evaluator-0\n"));
  EXPECT_NE(text(), first);
  EXPECT_EQ(Make("make", "--only evaluator-1"), 2);
  EXPECT_THAT(err_, HasSubstr("there is no evaluator-1"));
}

TEST_F(CertsCommandTest, FileWithoutAClusterIsRefusedAndNothingIsMade) {
  // The outer key is missing.
  std::ofstream(directory_.Join("cluster.json"))
      << R"({"ps": ["localhost:0"], "worker": ["localhost:0"]})";

  EXPECT_EQ(Make("make"), 2);

  EXPECT_THAT(err_, HasSubstr("there is no cluster; write {\"cluster\": "));
  EXPECT_FALSE(std::filesystem::exists(directory_.Join("tls")));
}

TEST_F(CertsCommandTest, WarningsOfTheClusterAreTold) {
  std::ofstream(directory_.Join("cluster.json"))
      << R"({"cluster": {"ps": ["localhost:0"], "worker": ["localhost:0"]},
             "extra": 1})";

  EXPECT_EQ(Make("make"), 0) << err_;

  EXPECT_THAT(err_, AllOf(HasSubstr("warning: "), HasSubstr("extra")));
}

TEST_F(CertsCommandTest, RenewMakesNoAuthority) {
  EXPECT_EQ(Make("renew"), 2);
  EXPECT_THAT(err_, HasSubstr("`lockstep certs make` makes it"));
}

TEST_F(CertsCommandTest, CheckTakesTheMapOfNamesThatAreNotLocksteps) {
  const std::string id = "spiffe://cluster.local/ns/ml/sa/worker";
  testing::WriteTlsFiles(directory_.Join("tls"), TestAuthority().Files(id));
  const std::string map = directory_.Join("map");
  const std::string check = "check --tls_dir " + directory_.Join("tls");
  testing::WriteText(map, absl::StrCat("job = fashion\n", id, " = worker/*\n"),
                     0644);
  EXPECT_EQ(Run(check + " --identity_map " + map), 0) << out_;
  EXPECT_THAT(out_, AllOf(HasSubstr(id), HasSubstr("all is well")));
  EXPECT_EQ(Run(check), 1);
  EXPECT_THAT(out_, HasSubstr("map its names with --identity_map"));
  testing::WriteText(map, "job = fashion\nx = king/0\n", 0644);
  EXPECT_EQ(Run(check + " --identity_map " + map), 1);
  EXPECT_THAT(out_, HasSubstr(map + ":2: "));
  EXPECT_EQ(Run(check + " --identity_map " + directory_.Join("none")), 1);
  EXPECT_THAT(out_, HasSubstr("--identity_map " + directory_.Join("none")));
}

TEST_F(CertsCommandTest, CheckSaysWhatIsWrongInWords) {
  const TestAuthority authority;
  TlsFiles files = authority.Files("worker/1");
  files.key = authority.Files("worker/1").key;
  testing::WriteTlsFiles(directory_.Join("half"), files);
  EXPECT_EQ(Run("check --tls_dir " + directory_.Join("half")), 1);
  EXPECT_THAT(out_, HasSubstr("wrong: tls.key does not fit tls.crt"));
  EXPECT_EQ(Run("check --tls_dir " + directory_.Join("missing")), 1);
  EXPECT_THAT(err_, HasSubstr("tls.crt"));
}

TEST_F(CertsCommandTest, CheckOfAWholeSetNamesTheDirectoryOfATask) {
  ASSERT_EQ(Make("make"), 0) << err_;
  EXPECT_EQ(Run("check --tls_dir " + directory_.Join("tls")), 1);
  EXPECT_THAT(err_, HasSubstr("give one, as --tls_dir " +
                              directory_.Join("tls/chief-0") + ";"));
}

TEST_F(CertsCommandTest, AnAuthoritysKeyThatOthersCanReadIsRefused) {
  ASSERT_EQ(Make("make"), 0) << err_;
  const std::string key = directory_.Join("tls/ca.key");
  std::filesystem::permissions(key, std::filesystem::perms(0644));
  const std::string fix =
      "has mode 0644, so that others may make certificates "
      "of any role: chmod 600 " +
      key;

  EXPECT_EQ(Run("check --tls_dir " + directory_.Join("tls")), 1);
  EXPECT_THAT(err_, HasSubstr(fix));
  EXPECT_EQ(Make("renew"), 2);
  EXPECT_THAT(err_, HasSubstr(fix));
  std::filesystem::permissions(key, std::filesystem::perms(0600));
  EXPECT_EQ(Make("renew"), 0) << err_;

  const std::string task = directory_.Join("tls/ps-0");
  std::filesystem::copy_file(key, task + "/ca.key");
  std::filesystem::permissions(task + "/ca.key", std::filesystem::perms(0640));
  EXPECT_EQ(Run("check --tls_dir " + task), 1);
  EXPECT_THAT(out_, AllOf(HasSubstr("wrong: "), HasSubstr("has mode 0640"),
                          Not(HasSubstr("all is well"))));
}

}  // namespace
}  // namespace lockstep::cli
