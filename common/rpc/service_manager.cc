#include "common/rpc/service_manager.h"

#include <systemd/sd-daemon.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "common/base/log.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "grpcpp/client_context.h"
#include "grpcpp/impl/client_unary_call.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/support/byte_buffer.h"

namespace lockstep {
namespace {

constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";
// HealthCheckResponse with its only field, `status`, in wire format.
constexpr absl::string_view kServing = "\x08\x01";

// Zero if systemd does not watch the process.
absl::Duration WatchdogInterval() {
  uint64_t micros = 0;
  if (sd_watchdog_enabled(0, &micros) <= 0) return absl::ZeroDuration();
  return absl::Microseconds(static_cast<int64_t>(micros));
}

}  // namespace

ServiceManagerClient::ServiceManagerClient(const std::string& address)
    : own_server_(address) {
  sd_notify(0, "READY=1\nSTATUS=Serving");
  const absl::Duration interval = WatchdogInterval();
  if (interval == absl::ZeroDuration() || address.empty()) return;
  thread_ = std::thread([this, interval] { Watch(interval / 3); });
}

ServiceManagerClient::~ServiceManagerClient() {
  sd_notify(0, "STOPPING=1\nSTATUS=Leaving");
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    quit_ = true;
    wake_.SignalAll();
  }
  thread_.join();
}

void ServiceManagerClient::Watch(absl::Duration interval) {
  while (true) {
    const absl::Status serves = CheckServer(interval);
    if (serves.ok()) {
      sd_notify(0, "WATCHDOG=1");
    } else {
      spdlog::warn("{}", serves.message());
    }
    MutexLock lock(mutex_);
    if (!quit_) wake_.WaitFor(mutex_, absl::ToChronoMilliseconds(interval));
    if (quit_) return;
  }
}

// The request is the empty message, which means the whole server.
absl::Status ServiceManagerClient::CheckServer(absl::Duration timeout) const {
  const grpc::internal::RpcMethod method(kHealthCheck,
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(timeout));
  context.set_wait_for_ready(true);
  // A new connection each time: an open one would still answer if the server
  // accepted no new ones.
  const std::shared_ptr<grpc::Channel> channel = MakeChannel(own_server_);
  const grpc::Status answered =
      grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
          channel.get(), method, &context, request, &response);
  if (!answered.ok()) {
    return absl::UnavailableError("this process's own server does not answer");
  }
  grpc::Slice bytes;
  if (response.DumpToSingleSlice(&bytes).ok() &&
      absl::string_view(reinterpret_cast<const char*>(bytes.begin()),
                        bytes.size()) == kServing) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      "this process's own server answers that it does not serve");
}

}  // namespace lockstep
