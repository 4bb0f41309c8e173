#ifndef LOCKSTEP_COMMON_RPC_SERVICE_MANAGER_H_
#define LOCKSTEP_COMMON_RPC_SERVICE_MANAGER_H_

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace lockstep {

// ServiceManagerClient reports this process's state to systemd, if systemd
// requests it (Type=notify). The process is ready as long as this object
// exists. At each third of the watchdog's interval the client opens a new
// connection to the process's own gRPC server, and reports the process alive if
// its health service answers SERVING. If the server hangs, accepts no
// connections or answers NOT_SERVING, the client reports nothing, so that
// systemd kills and restarts the process. A check ends before the next begins,
// so one may fail without a restart. Readiness does not depend on peers.
//
// Without systemd it does nothing. Must be constructed after the server
// listens.
//
// Threads: has a thread of its own; not thread-safe.
class ServiceManagerClient {
 public:
  // `address` is that of this process's own server, "host:port"; empty for a
  // process without a server, whose unit must not have a watchdog.
  explicit ServiceManagerClient(const std::string& address);
  ~ServiceManagerClient();
  ServiceManagerClient(const ServiceManagerClient&) = delete;
  ServiceManagerClient& operator=(const ServiceManagerClient&) = delete;

 private:
  // `watchdog`: systemd's interval.
  void Watch(absl::Duration watchdog) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string own_server_;

  Mutex mutex_;
  CondVar wake_;
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SERVICE_MANAGER_H_
