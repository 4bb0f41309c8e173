// What the health service says.

#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/impl/client_unary_call.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

// HealthCheckResponse with its only field, `status`, as it is on the wire.
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";

std::string Health(const GrpcServer& server) {
  const auto channel = MakeChannel(absl::StrCat("127.0.0.1:", server.port()));
  const grpc::internal::RpcMethod method("/grpc.health.v1.Health/Check",
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  const grpc::Status status =
      grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
          channel.get(), method, &context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  grpc::Slice bytes;
  EXPECT_TRUE(response.DumpToSingleSlice(&bytes).ok());
  return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
}

TEST(GrpcServerHealthTest, SaysWhetherTheProcessServes) {
  const auto server = GrpcServer::Start("127.0.0.1:0", {});
  ASSERT_OK(server);
  EXPECT_EQ(Health(**server), kServing);

  (*server)->SetServing(false);
  EXPECT_EQ(Health(**server), kNotServing);

  (*server)->SetServing(true);
  EXPECT_EQ(Health(**server), kServing);
}

}  // namespace
}  // namespace lockstep
