#ifndef LOCKSTEP_COMMON_OBSERVE_STATUS_SERVER_H_
#define LOCKSTEP_COMMON_OBSERVE_STATUS_SERVER_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/observe/http_request.h"
#include "common/observe/request_reader.h"
#include "common/rpc/tcp_listener.h"

namespace lockstep {

// The answer of a StatusServer to GET of one path.
struct StatusPage {
  std::string path;  // "/metrics"
  std::string type;  // its Content-Type
  // The page's additions to the header Content-Security-Policy, which otherwise
  // lets a browser load and run nothing: "; script-src 'sha256-...'".
  std::string policy = {};
  // Returns the body. Runs in a thread of the server, one call at a time.
  std::function<std::string()> body;
  // Shows figures that only an operator with a certificate may see.
  bool is_private = false;
  // Answers repeat the last body for this time.
  absl::Duration lasts = absl::ZeroDuration();
};

// StatusServer answers GET of a few paths over HTTP, for browsers, Prometheus
// and curl, and GET /healthz with "ok", or with 503 and the reason, for probes
// without gRPC. It changes nothing: other methods are answered with 405, other
// paths with 404.
//
// A connection carries one request, whose headers must arrive within a second
// and have at most 8 KiB; bodies are never read. One thread reads all requests,
// so connections without one delay no other; when too many of them are open,
// the oldest is closed. The number of served and waiting connections is
// limited, too. So a peer cannot hold memory, descriptors or, for long, a
// thread. Debian's HTTP libraries do not guarantee that: cpp-httplib holds a
// whole body or line in memory.
//
// Answers let a browser load nothing from elsewhere, and show them in no other
// site's frame; requests for the name of another host are refused: see
// IsOwnHost().
//
// Threads: `body` and `health` run in threads of the server's own.
class StatusServer {
 public:
  struct Options {
    std::vector<StatusPage> pages;
    // Null: the process is healthy if it answers.
    std::function<absl::Status()> health;
    std::vector<std::string> host_names;  // of this server, besides its numbers
    // Answers private pages only to peers of this process's user, or root, on
    // this machine: those can read its certificate, too.
    bool guard = false;
  };

  // Listens on `address` ("host:port", port 0 takes a free one).
  //
  //   kInvalidArgument  no host and port
  //   kUnavailable      the port is taken, or the host is not this machine's
  static absl::StatusOr<std::unique_ptr<StatusServer>> Start(
      const std::string& address, Options options);

  ~StatusServer();

  int port() const { return listener_->port(); }

 private:
  struct Served;

  StatusServer(std::unique_ptr<TcpListener> listener,
               std::unique_ptr<RequestReader> reader, Options options);

  // A request that has arrived.
  struct Request {
    int socket = -1;
    std::string text;
  };

  void Enqueue(Request request) ABSL_LOCKS_EXCLUDED(mutex_);
  void ServeAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the whole answer to a request that begins with `request`.
  std::string Answer(const std::string& request, int socket);
  std::string AnswerTo(const HttpRequest& request, int socket);

  const std::unique_ptr<TcpListener> listener_;
  const std::unique_ptr<RequestReader> reader_;
  const Options options_;
  std::vector<std::unique_ptr<Served>> served_;  // one for each page

  Mutex mutex_;
  CondVar changed_;
  std::deque<Request> waiting_ ABSL_GUARDED_BY(mutex_);
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<std::thread> threads_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBSERVE_STATUS_SERVER_H_
