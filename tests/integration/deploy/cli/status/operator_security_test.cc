#include "deploy/cli/status/operator_security.h"

#include <string>

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

TEST(OperatorSecurityTest, DirectoryWithoutCertificateChangesNothing) {
  const testing::TempDir directory;
  EXPECT_THAT(UseOperatorCertificate(directory.path()), Not(IsOk()));
  EXPECT_EQ(OwnSecurity(), nullptr);
}

}  // namespace
}  // namespace lockstep::cli
