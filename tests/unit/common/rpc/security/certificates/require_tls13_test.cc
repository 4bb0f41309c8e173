#include "common/rpc/security/certificates/require_tls13.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "openssl/ssl.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ContextPtr = std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)>;

TEST(RequireTls13Test, OlderVersionsAreOffInNewConnections) {
  ASSERT_OK(RequireTls13());
  ASSERT_OK(RequireTls13());
  const ContextPtr context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  // As gRPC does.
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  const uint64_t options = SSL_CTX_get_options(context.get());
  EXPECT_NE(options & SSL_OP_NO_TLSv1_2, 0u);
  EXPECT_NE(options & SSL_OP_NO_TLSv1_1, 0u);
  EXPECT_EQ(options & SSL_OP_NO_TLSv1_3, 0u);
}

}  // namespace
}  // namespace lockstep
