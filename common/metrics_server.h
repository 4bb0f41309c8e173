#ifndef LOCKSTEP_COMMON_METRICS_SERVER_H_
#define LOCKSTEP_COMMON_METRICS_SERVER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/metrics.h"

namespace httplib {
class Server;
}

namespace lockstep {

// MetricsServer answers GET /metrics over HTTP, for Prometheus and for curl.
//
// Threads: `source` runs in a thread of the server's own, one call at a time.
class MetricsServer {
 public:
  using Source = std::function<std::vector<Metric>()>;

  // Listens on `address` ("host:port", port 0 takes a free one).
  //
  //   kInvalidArgument  no host and port
  //   kUnavailable      the port is taken, or the host is not this machine's
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const std::string& address, Source source);

  ~MetricsServer();

  int port() const { return port_; }

 private:
  MetricsServer(std::unique_ptr<httplib::Server> server, int port);

  const std::unique_ptr<httplib::Server> server_;
  const int port_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_METRICS_SERVER_H_
