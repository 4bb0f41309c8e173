#include "common/rpc/security/certificates/tls_files.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::TestAuthority;
using ::testing::HasSubstr;

TEST(TlsFilesTest, PlaceholdersAreTheTasks) {
  EXPECT_EQ(TlsDirOf("/tls/{role}-{index}", {TaskType::kWorker, 3}),
            "/tls/worker-3");
}

TEST(TlsFilesTest, ReadsWhatWasWritten) {
  const TempDir directory;
  TlsFiles files = TestAuthority().Files("ps/0");
  testing::WriteTlsFiles(directory.path(), files);
  EXPECT_THAT(ReadTlsFiles(directory.path()), IsOkAndHolds(files));
  files.revoked = "a list";
  testing::WriteTlsFiles(directory.path(), files);
  EXPECT_THAT(ReadTlsFiles(directory.path()), IsOkAndHolds(files));
}

TEST(TlsFilesTest, MissingFileIsNamed) {
  const TempDir directory;
  testing::WriteTlsFiles(directory.path(), TestAuthority().Files("ps/0"));
  for (const char* name : {"tls.crt", "tls.key", "ca.crt"}) {
    const std::string path = directory.Join(name);
    std::filesystem::rename(path, path + ".away");
    EXPECT_THAT(ReadTlsFiles(directory.path()),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(name)));
    std::filesystem::rename(path + ".away", path);
  }
}

TEST(TlsFilesTest, KeyThatOthersCanUseIsRefused) {
  const TempDir directory;
  testing::WriteTlsFiles(directory.path(), TestAuthority().Files("ps/0"));
  for (const mode_t mode : {0604, 0602, 0601, 0620, 0610, 0644, 0666}) {
    chmod(directory.Join("tls.key").c_str(), mode);
    EXPECT_THAT(
        ReadTlsFiles(directory.path()),
        StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("chmod 600")))
        << mode;
  }
  for (const mode_t mode : {0400, 0600, 0440, 0640}) {
    chmod(directory.Join("tls.key").c_str(), mode);
    EXPECT_OK(ReadTlsFiles(directory.path())) << mode;
  }
}

TEST(TlsFilesTest, KeyOfAnotherUserIsRefused) {
  const TempDir directory;
  testing::WriteTlsFiles(directory.path(), TestAuthority().Files("ps/0"));
  if (chown(directory.Join("tls.key").c_str(), 12345, 12345) != 0) {
    GTEST_SKIP()
        << "SKIPPED, NOTHING WAS PROVED: only root can give files away";
  }
  EXPECT_THAT(ReadTlsFiles(directory.path()),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("belongs to user 12345")));
}

TEST(TlsFilesTest, FilesThatAreNoneAreRefused) {
  const TempDir directory;
  testing::WriteTlsFiles(directory.path(), TestAuthority().Files("ps/0"));
  std::filesystem::remove(directory.Join("ca.crt"));
  std::filesystem::create_directory(directory.Join("ca.crt"));
  EXPECT_THAT(ReadTlsFiles(directory.path()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  std::filesystem::remove(directory.Join("ca.crt"));
  testing::WriteText(directory.Join("ca.crt"), "", 0644);
  EXPECT_THAT(
      ReadTlsFiles(directory.path()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 bytes")));
  ASSERT_EQ(mkfifo(directory.Join("fifo").c_str(), 0600), 0);
  std::filesystem::rename(directory.Join("fifo"), directory.Join("tls.key"));
  EXPECT_THAT(ReadTlsFiles(directory.path()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(TlsFilesTest, FilesThatFitAreTaken) {
  const auto checked =
      CheckTlsFiles(TestAuthority().Files("worker/1"), "", absl::Now());
  ASSERT_OK(checked);
  EXPECT_EQ(checked->job, "fashion");
  EXPECT_EQ(checked->own.Owner(), "lockstep://fashion/worker/1");
}

TEST(TlsFilesTest, FilesThatDoNotFitAreNamed) {
  const TestAuthority authority;
  TlsFiles files = authority.Files("worker/1");
  files.key = authority.Files("worker/1").key;
  EXPECT_THAT(
      CheckTlsFiles(files, "", absl::Now()),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("tls.key does not fit tls.crt, the "
                         "certificate of lockstep://fashion/worker/1")));
  files = authority.Files("worker/1");
  files.key = "nonsense";
  EXPECT_THAT(CheckTlsFiles(files, "", absl::Now()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tls.key has no private key")));
  files = authority.Files("worker/1");
  files.authorities = TestAuthority("other").certificate();
  EXPECT_THAT(CheckTlsFiles(files, "", absl::Now()),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("not signed by an authority of ca.crt")));
  files = authority.Files("worker/1");
  files.certificate.resize(200);
  EXPECT_THAT(
      CheckTlsFiles(files, "", absl::Now()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tls.crt")));
}

TEST(TlsFilesTest, ExpiredCertificateIsRefused) {
  const TestAuthority authority;
  const TlsFiles files = authority.FilesOf(authority.Issue(
      "ps/0", {absl::Now() - absl::Hours(2), absl::Now() - absl::Hours(1)}));
  EXPECT_THAT(CheckTlsFiles(files, "", absl::Now()),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("expired 60 min ago; renew it, as with "
                                 "`lockstep certs renew`")));
}

TEST(TlsFilesTest, CertificateIsOfOneJob) {
  const TestAuthority authority;
  const auto of = [&](const std::vector<std::string>& names) {
    return authority.FilesOf(authority.IssueAll(names, TestAuthority::Valid()));
  };
  EXPECT_THAT(
      CheckTlsFiles(of({"ps/0", "lockstep://other/ps/0"}), "", absl::Now()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("of one job")));
  EXPECT_THAT(CheckTlsFiles(of({"https://example.com"}), "", absl::Now()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--identity_map")));
  const auto mapped =
      CheckTlsFiles(of({"https://example.com"}), "fashion", absl::Now());
  ASSERT_OK(mapped);
  EXPECT_EQ(mapped->job, "fashion");
}

}  // namespace
}  // namespace lockstep
