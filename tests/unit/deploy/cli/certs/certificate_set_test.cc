#include "deploy/cli/certs/certificate_set.h"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "common/rpc/security/certificates/tls_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CertificateSetTest : public ::testing::Test {
 protected:
  CertificateSetTest() {
    const absl::Time now = absl::Now();
    set_.job = "fashion";
    set_.tasks = {{{TaskType::kPs, 0}, "ps.example.com:1"},
                  {{TaskType::kWorker, 0}, "10.0.0.7:2"}};
    set_.chief = {TaskType::kWorker, 0};
    set_.directory = directory_.Join("tls");
    set_.validity = {now - absl::Hours(1), now + absl::Hours(24 * 90)};
    set_.authority_valid = set_.validity;
    set_.made = set_.validity.from;
  }

  CheckedTlsFiles Checked(const std::string& member) const {
    return CheckTlsFiles(ReadTlsFiles(set_.directory + "/" + member).value(),
                         "", absl::Now())
        .value();
  }

  const TempDir directory_;
  CertificateSet set_;
};

TEST_F(CertificateSetTest, EachMemberHasFilesThatFit) {
  ASSERT_OK(WriteCertificateSet(set_));
  EXPECT_THAT(Checked("ps-0").own.names.uris,
              ElementsAre("lockstep://fashion/ps/0"));
  EXPECT_THAT(Checked("ps-0").own.names.dns,
              ElementsAre("ps.example.com", "localhost"));
  EXPECT_THAT(Checked("worker-0").own.addresses, ElementsAre("10.0.0.7"));
  EXPECT_THAT(Checked("operator-read").own.names.uris,
              ElementsAre("lockstep://fashion/operator/read"));
  EXPECT_THAT(Checked("operator-steer").own.names.uris,
              ElementsAre("lockstep://fashion/operator/steer"));
}

// A limit on the size of files makes a short write, as a full volume does.
TEST_F(CertificateSetTest, FileThatIsCutOffIsAnError) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {64, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteCertificateSet(set_).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);

  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("there is room for 64 of")));
  EXPECT_THAT(WriteCertificateSet(set_), IsOk());
}

TEST_F(CertificateSetTest, KeyOfACallThatWasCutOffIsNamed) {
  ASSERT_OK(WriteCertificateSet(set_));
  std::filesystem::remove(set_.directory + "/ca.crt");
  EXPECT_THAT(WriteCertificateSet(set_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("remove the key")));
}

TEST_F(CertificateSetTest, EmptyKeyIsNotTakenForOneThatIsAway) {
  ASSERT_OK(WriteCertificateSet(set_));
  std::filesystem::resize_file(set_.directory + "/ca.key", 0);
  EXPECT_THAT(WriteCertificateSet(set_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(set_.directory +
                                 "/ca.key: the authority's key does not fit "
                                 "its certificate; bring the key")));
}

TEST_F(CertificateSetTest, WithoutServersAMemberIsAWorkerAndItsMirror) {
  set_.tasks = {{{TaskType::kChief, 0}, "c:1"},
                {{TaskType::kWorker, 0}, "w:1"}};
  set_.chief = {TaskType::kChief, 0};

  ASSERT_OK(WriteCertificateSet(set_));

  EXPECT_THAT(
      Checked("worker-0").own.names.uris,
      ElementsAre("lockstep://fashion/worker/0", "lockstep://fashion/ps/0",
                  "lockstep://fashion/chief/0"));
  EXPECT_THAT(
      Checked("worker-1").own.names.uris,
      ElementsAre("lockstep://fashion/worker/1", "lockstep://fashion/ps/1"));
}

TEST_F(CertificateSetTest, WorkerThatHostsTheChiefHasBothNames) {
  ASSERT_OK(WriteCertificateSet(set_));
  EXPECT_THAT(
      Checked("worker-0").own.names.uris,
      ElementsAre("lockstep://fashion/worker/0", "lockstep://fashion/chief/0"));
}

TEST_F(CertificateSetTest, RenewalKeepsTheAuthorityAndReplacesThePair) {
  ASSERT_OK(WriteCertificateSet(set_));
  const CheckedTlsFiles old = Checked("ps-0");
  const CheckedTlsFiles other = Checked("worker-0");
  set_.only = "ps-0";
  ASSERT_OK(WriteCertificateSet(set_));
  const CheckedTlsFiles renewed = Checked("ps-0");
  EXPECT_EQ(renewed.files.authorities, old.files.authorities);
  EXPECT_NE(renewed.files.key, old.files.key);
  EXPECT_EQ(Checked("worker-0").files, other.files);
  int pairs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(set_.directory)) {
    const std::string name = entry.path().filename();
    pairs += name.rfind(".ps-0", 0) == 0 ? 1 : 0;
  }
  EXPECT_EQ(pairs, 1) << "the old pair has gone";
}

// The link of a member may be the operator's own.
TEST_F(CertificateSetTest, DirectoryOutsideOfTheSetStays) {
  ASSERT_OK(WriteCertificateSet(set_));
  set_.only = "ps-0";
  const std::string link = set_.directory + "/ps-0";
  for (const std::string& target :
       {directory_.Join("mine"), std::string("../mine"),
        std::string("../tls/.ps-0.mine")}) {
    const std::filesystem::path place =
        std::filesystem::path(set_.directory) / target;
    std::filesystem::create_directories(place);
    std::ofstream(place / "notes") << "mine";
    std::filesystem::remove(link);
    std::filesystem::create_directory_symlink(target, link);
    ASSERT_OK(WriteCertificateSet(set_));
    EXPECT_TRUE(std::filesystem::exists(place / "notes")) << target;
    EXPECT_FALSE(std::filesystem::exists(link + "/notes")) << target;
  }
}

TEST_F(CertificateSetTest, DirectoryInThePlaceOfALinkIsNamedAndNoKeyIsLeft) {
  ASSERT_OK(WriteCertificateSet(set_));
  const std::filesystem::path tls = set_.directory;
  // As a copy of the set has it that follows links.
  const std::string pair = std::filesystem::read_symlink(tls / "ps-0");
  std::filesystem::remove(tls / "ps-0");
  std::filesystem::rename(tls / pair, tls / "ps-0");

  EXPECT_THAT(WriteCertificateSet(set_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("/ps-0 is a directory, and not the link")));
  EXPECT_FALSE(std::filesystem::exists(tls / ".ps-0.1"));
  EXPECT_FALSE(std::filesystem::is_symlink(tls / "ps-0.next"));
  EXPECT_TRUE(std::filesystem::exists(tls / "ps-0/tls.key"));

  std::filesystem::remove_all(tls / "ps-0");
  EXPECT_THAT(WriteCertificateSet(set_), IsOk());
}

TEST_F(CertificateSetTest, AuthorityThatWasTakenAwayIsAskedFor) {
  ASSERT_OK(WriteCertificateSet(set_));
  std::filesystem::remove(set_.directory + "/ca.key");
  EXPECT_THAT(WriteCertificateSet(set_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("bring the")));
}

TEST_F(CertificateSetTest, ASetOfAnotherJobIsNotRenamed) {
  ASSERT_OK(WriteCertificateSet(set_));
  set_.job = "fashoin";
  set_.only = "ps-0";

  EXPECT_THAT(WriteCertificateSet(set_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ps-0/tls.crt is of the job fashion; give "
                                 "--job fashion")));

  EXPECT_THAT(Checked("ps-0").own.names.uris,
              ElementsAre("lockstep://fashion/ps/0"));
}

TEST_F(CertificateSetTest, SecretsAreForTheOwnerAlone) {
  ASSERT_OK(WriteCertificateSet(set_));
  for (const char* path : {"/ca.key", "/ps-0/tls.key"}) {
    const auto mode =
        std::filesystem::status(set_.directory + path).permissions();
    EXPECT_EQ(mode, std::filesystem::perms::owner_read |
                        std::filesystem::perms::owner_write)
        << path;
  }
}

TEST_F(CertificateSetTest, UnknownMemberAndUnfitJobAreRefused) {
  set_.only = "worker-7";
  EXPECT_THAT(WriteCertificateSet(set_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the members are ps-0, worker-0")));
  set_.only = "";
  set_.job = "my job";
  EXPECT_THAT(WriteCertificateSet(set_),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(std::filesystem::exists(set_.directory));
}

}  // namespace
}  // namespace lockstep::cli
