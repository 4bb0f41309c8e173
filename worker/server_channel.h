#ifndef LOCKSTEP_WORKER_SERVER_CHANNEL_H_
#define LOCKSTEP_WORKER_SERVER_CHANNEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace lockstep {

// ServerChannel sends raw messages to one server, over a few connections in
// turn, and can end all calls in flight at once.
//
// Threads: safe to share; callbacks run in gRPC's threads, never inside Call().
class ServerChannel {
 public:
  using Callback = std::function<void(absl::Status, grpc::ByteBuffer response)>;

  ServerChannel(const std::string& address, int connections);
  // Waits until every callback has run.
  ~ServerChannel();

  // `method` is a full name, "/lockstep.v1.ParameterService/Push". What the
  // request refers to must stay until the callback has run.
  void Call(const std::string& method, const grpc::ByteBuffer& request,
            absl::Duration deadline, Callback callback)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends calls in flight and all later ones with kCancelled.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct InFlight;

  void Done(InFlight* call, const grpc::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;

  Mutex mutex_;
  CondVar idle_;
  size_t next_stub_ ABSL_GUARDED_BY(mutex_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<InFlight*, std::unique_ptr<InFlight>> in_flight_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SERVER_CHANNEL_H_
