#ifndef LOCKSTEP_COMMON_RPC_SERVICE_MANAGER_H_
#define LOCKSTEP_COMMON_RPC_SERVICE_MANAGER_H_

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace lockstep {

// ServiceManagerClient tells systemd how this process is, where systemd wants
// to know (Type=notify): ready as long as this object lives, and alive, at
// a third of the watchdog's interval, each time the health service of its own
// gRPC server says SERVING on a connection that is made for it. A process whose
// server hangs, takes no connections or says NOT_SERVING is silent, so that
// systemd ends it and starts it again. Readiness says nothing of peers.
//
// Elsewhere it does nothing. Make it once the server listens.
class ServiceManagerClient {
 public:
  // `address` is this process's own server's, "host:port"; empty for a process
  // without one, whose unit cannot have a watchdog.
  explicit ServiceManagerClient(const std::string& address);
  ~ServiceManagerClient();
  ServiceManagerClient(const ServiceManagerClient&) = delete;
  ServiceManagerClient& operator=(const ServiceManagerClient&) = delete;

 private:
  void Watch(absl::Duration interval) ABSL_LOCKS_EXCLUDED(mutex_);
  // Asks the own server's health service.
  //
  //   kUnavailable  it does not answer, or says that it does not serve
  absl::Status CheckServer(absl::Duration timeout) const;

  const std::string own_server_;

  Mutex mutex_;
  CondVar wake_;
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SERVICE_MANAGER_H_
