#ifndef LOCKSTEP_COMMON_OBSERVE_METRICS_SERVER_H_
#define LOCKSTEP_COMMON_OBSERVE_METRICS_SERVER_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/observe/metrics.h"
#include "common/rpc/tcp_listener.h"

namespace lockstep {

// MetricsServer answers GET /metrics over HTTP, for Prometheus and for curl,
// and GET /healthz with "ok", or with 503 and the reason, for probes without
// gRPC.
//
// A connection carries one request, whose headers must arrive within a second
// and have at most 8 KiB; bodies are never read. The number of served and
// waiting connections is limited, and further ones are closed at once. So a
// peer cannot hold memory, descriptors or, for long, a thread. Debian's HTTP
// libraries do not guarantee that: cpp-httplib holds a whole body or line in
// memory.
//
// Threads: `source` and `health` run in threads of the server's own; `source`
// one call at a time, `health` several.
class MetricsServer {
 public:
  using Source = std::function<std::vector<Metric>()>;
  using Health = std::function<absl::Status()>;

  // Listens on `address` ("host:port", port 0 takes a free one). Without
  // `health`, the process is well if it answers.
  //
  //   kInvalidArgument  no host and port
  //   kUnavailable      the port is taken, or the host is not this machine's
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const std::string& address, Source source, Health health = nullptr);

  ~MetricsServer();

  int port() const { return listener_->port(); }

 private:
  MetricsServer(std::unique_ptr<TcpListener> listener, Source source,
                Health health);

  void Enqueue(int socket) ABSL_LOCKS_EXCLUDED(mutex_);
  void ServeAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the whole answer to a request that begins with `request`.
  std::string Answer(const std::string& request)
      ABSL_LOCKS_EXCLUDED(source_mutex_);

  const std::unique_ptr<TcpListener> listener_;

  const Health health_;

  Mutex source_mutex_;
  const Source source_ ABSL_GUARDED_BY(source_mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::deque<int> waiting_ ABSL_GUARDED_BY(mutex_);  // sockets
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<std::thread> threads_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBSERVE_METRICS_SERVER_H_
