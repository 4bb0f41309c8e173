#include "tests/integration/call.h"

#include "absl/synchronization/notification.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace lockstep::testing {

absl::Status CallWithBytes(const std::shared_ptr<grpc::Channel>& channel,
                           const std::string& method, const std::string& bytes,
                           absl::Duration timeout,
                           grpc_compression_algorithm algorithm) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  context.set_compression_algorithm(algorithm);
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  absl::Notification done;
  grpc::Status result;
  stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &response,
                 [&](grpc::Status status) {
                   result = std::move(status);
                   done.Notify();
                 });
  done.WaitForNotification();
  return FromGrpcStatus(result);
}

}  // namespace lockstep::testing
