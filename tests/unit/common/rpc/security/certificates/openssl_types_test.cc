#include "common/rpc/security/certificates/openssl_types.h"

#include "gtest/gtest.h"
#include "openssl/err.h"
#include "tests/testing/test_certificates.h"

namespace lockstep {
namespace {

TEST(OpenSslTypesTest, ErrorsAreReadOnce) {
  EXPECT_EQ(ReadKey("no key"), nullptr);
  EXPECT_NE(OpenSslError(), "unknown error");
  EXPECT_EQ(ERR_peek_error(), 0u);
}

TEST(OpenSslTypesTest, KeyWithAPassphraseIsNoneWithoutAQuestion) {
  const std::string kEncrypted =
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
      "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAi3YTsRrCUHKgICCAAw\n"
      "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEDZ4\n"
      "-----END ENCRYPTED PRIVATE KEY-----\n";
  EXPECT_EQ(ReadKey(kEncrypted), nullptr);
  EXPECT_NE(ReadKey(testing::TestAuthority().pair().key), nullptr);
}

}  // namespace
}  // namespace lockstep
