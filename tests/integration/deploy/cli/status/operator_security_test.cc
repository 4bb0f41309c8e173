#include "deploy/cli/status/operator_security.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/security/transport/transport_security.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::IsOk;
using ::testing::Not;

TEST(OperatorSecurityTest, CertificateIsInUseUntilItIsDropped) {
  const testing::TempDir directory;
  const testing::TestAuthority authority;
  testing::WriteTlsFiles(directory.path(),
                         authority.Files("lockstep://fashion/operator/steer"));

  ASSERT_OK(UseOperatorCertificate(directory.path()));
  ASSERT_NE(OwnSecurity(), nullptr);
  EXPECT_EQ(OwnSecurity()->job(), "fashion");

  DropOperatorCertificate();
  EXPECT_EQ(OwnSecurity(), nullptr);
  DropOperatorCertificate();  // once more does nothing
}

TEST(OperatorSecurityTest, MapGivesRolesToOtherNames) {
  const testing::TempDir directory;
  const testing::TestAuthority authority;
  const std::string id = "spiffe://cluster.local/ns/ml/sa/admin";
  testing::WriteTlsFiles(directory.path(), authority.Files(id));
  testing::WriteText(directory.Join("map"),
                     absl::StrCat("job = fashion\n", id, " = operator/steer\n"),
                     0644);

  EXPECT_THAT(UseOperatorCertificate(directory.path()), Not(IsOk()));
  ASSERT_OK(UseOperatorCertificate(directory.path(), directory.Join("map")));
  EXPECT_EQ(OwnSecurity()->job(), "fashion");
  DropOperatorCertificate();
}

TEST(OperatorSecurityTest, DirectoryWithoutCertificateChangesNothing) {
  const testing::TempDir directory;
  EXPECT_THAT(UseOperatorCertificate(directory.path()), Not(IsOk()));
  EXPECT_EQ(OwnSecurity(), nullptr);
}

}  // namespace
}  // namespace lockstep::cli
