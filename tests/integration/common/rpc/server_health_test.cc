// The health service and reflection of a server.

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
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

using ::testing::HasSubstr;

// HealthCheckResponse with its only field, `status`, in wire format.
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";

// ServerReflectionRequest with an empty `list_services`.
constexpr absl::string_view kListServices("\x3a\x00", 2);

// Returns the answer to `message`; the test has no generated code of its
// protocol.
std::string Ask(const GrpcServer& server, const char* name,
                absl::string_view message) {
  const auto channel = MakeChannel(absl::StrCat("127.0.0.1:", server.port()));
  const grpc::internal::RpcMethod method(name,
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  const grpc::Slice sent(message.data(), message.size());
  const grpc::ByteBuffer request(&sent, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  const grpc::Status status =
      grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
          channel.get(), method, &context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  grpc::Slice bytes;
  if (!status.ok()) return "";
  EXPECT_TRUE(response.DumpToSingleSlice(&bytes).ok());
  return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
}

std::string Health(const GrpcServer& server) {
  return Ask(server, "/grpc.health.v1.Health/Check", "");
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

// Like a worker's and an evaluator's server, which have no services of their
// own.
TEST(GrpcServerHealthTest, ServerWithoutServicesHasReflectionToo) {
  const auto server = GrpcServer::Start("127.0.0.1:0", {});
  ASSERT_OK(server);

  EXPECT_THAT(
      Ask(**server,
          "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
          kListServices),
      HasSubstr("grpc.reflection.v1alpha.ServerReflection"));
}

}  // namespace
}  // namespace lockstep
