#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

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

constexpr int kVersions = 100;

TEST(TlsFilesRenewalTest, FilesThatALinkReplacesAreOfOneVersion) {
  const TempDir directory;
  const TestAuthority authority;
  // No version comes again, as in life: two readings could otherwise have the
  // same files of two versions.
  std::vector<TlsFiles> versions;
  for (int i = 0; i < kVersions; ++i) {
    versions.push_back(authority.Files("ps/0"));
    testing::WriteTlsFiles(directory.Join(absl::StrCat(i)), versions.back());
  }
  const std::string link = directory.Join("tls");
  std::filesystem::create_directory_symlink("0", link);
  std::atomic<bool> renews = true;
  std::thread renewal([&] {
    for (int i = 1; i < kVersions; ++i) {
      std::filesystem::create_directory_symlink(absl::StrCat(i),
                                                link + ".next");
      std::filesystem::rename(link + ".next", link);
      absl::SleepFor(absl::Milliseconds(5));
    }
    renews = false;
  });
  while (renews) {
    const absl::StatusOr<TlsFiles> files = ReadTlsFiles(link);
    EXPECT_TRUE(files.ok() && std::find(versions.begin(), versions.end(),
                                        *files) != versions.end());
  }
  renewal.join();
}

}  // namespace
}  // namespace lockstep
