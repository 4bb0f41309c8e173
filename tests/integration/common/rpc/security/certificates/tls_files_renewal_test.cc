#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/security/certificates/tls_files.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep {
namespace {

using ::lockstep::testing::TempDir;
using ::lockstep::testing::TestAuthority;

TEST(TlsFilesRenewalTest, FilesThatALinkReplacesAreOfOneVersion) {
  const TempDir directory;
  const TestAuthority authority;
  const TlsFiles versions[] = {authority.Files("ps/0"),
                               authority.Files("ps/0")};
  testing::WriteTlsFiles(directory.Join("0"), versions[0]);
  testing::WriteTlsFiles(directory.Join("1"), versions[1]);
  const std::string link = directory.Join("tls");
  std::filesystem::create_directory_symlink("0", link);
  std::atomic<bool> renews = true;
  std::thread renewal([&] {
    for (int i = 1; i <= 400; ++i) {
      std::filesystem::create_directory_symlink(absl::StrCat(i % 2),
                                                link + ".next");
      std::filesystem::rename(link + ".next", link);
      absl::SleepFor(absl::Milliseconds(5));
    }
    renews = false;
  });
  while (renews) {
    const absl::StatusOr<TlsFiles> files = ReadTlsFiles(link);
    EXPECT_TRUE(files.ok() && (*files == versions[0] || *files == versions[1]));
  }
  renewal.join();
}

}  // namespace
}  // namespace lockstep
