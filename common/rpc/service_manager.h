#ifndef LOCKSTEP_COMMON_RPC_SERVICE_MANAGER_H_
#define LOCKSTEP_COMMON_RPC_SERVICE_MANAGER_H_

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace lockstep {

// ServiceManagerClient reports this process's state to systemd, if systemd
// requests it (Type=notify): ready as long as this object exists, and alive, at
// each third of the watchdog's interval, whenever the health service of the
// process's own gRPC server answers SERVING on a new connection. A check ends
// before the next begins, so one may fail without a restart. If the server
// hangs, accepts no connections or answers NOT_SERVING, it sends nothing, so
// that systemd kills and restarts the process. Readiness does not depend on
// peers.
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
