#ifndef LOCKSTEP_COMMON_RPC_TCP_LISTENER_H_
#define LOCKSTEP_COMMON_RPC_TCP_LISTENER_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/log_budget.h"
#include "common/base/mutex.h"

namespace lockstep {

// Limits of simultaneous connections.
struct ConnectionLimits {
  size_t all = 8192;
  size_t of_one_address = 4096;  // an IPv6 network of /64 counts as one

  // Returns the limits that `descriptors`, the process's limit of open files,
  // allows besides its other files: a connection takes two descriptors.
  static ConnectionLimits For(size_t descriptors);
};

// TcpListener accepts TCP connections and passes their sockets on. It counts
// open connections and closes those beyond the limits at once, so that a peer
// cannot use up this process's descriptors. If descriptors run out
// nevertheless, it resumes when some are free: gRPC's own listener stops for
// good when accept4() fails once.
//
// Threads: accepts in a thread of its own; Stop() may be called in any.
class TcpListener {
 public:
  // Takes ownership of a non-blocking socket. `listener` is the listening
  // socket that accepted it.
  using Take = std::function<void(int listener, int socket)>;

  // Binds all addresses of `address`, "host:port"; port 0 takes a free one. No
  // connection is accepted before Start().
  //
  //   kInvalidArgument  `address` is no host and port
  //   kUnavailable      the port is taken, or the host is not this machine's
  static absl::StatusOr<std::unique_ptr<TcpListener>> Listen(
      const std::string& address, const ConnectionLimits& limits);

  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  int port() const { return port_; }

  // Must be called once. A connection counts until both of its directions are
  // shut down, which shutdown() and close() of its socket do.
  void Start(Take take);

  // Closes the port. When it returns, `take` is not running and will not run
  // again. Open connections are not affected.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  size_t connections() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Identifies a connection in epoll: the watched duplicate of its socket, a
  // number that is unique while it is open.
  using Peer = std::string;

  explicit TcpListener(const ConnectionLimits& limits) : limits_(limits) {}

  absl::Status Bind(const std::string& host, int port);
  void Run(const Take& take);
  // False if no descriptors are left.
  bool AcceptAll(int listener, const Take& take) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Accepted(int listener, int socket, const Peer& peer, const Take& take)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Warns at most once a minute, together with HasRoom().
  void WarnOutOfDescriptors(int error);
  bool HasRoom(const Peer& peer) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(int duplicate) ABSL_LOCKS_EXCLUDED(mutex_);
  // Turns the acceptance of new connections on or off.
  void Watch(bool on);

  const ConnectionLimits limits_;
  int port_ = 0;
  std::vector<int> listeners_;
  int epoll_ = -1;
  int wake_ = -1;  // readable after Stop()
  LogBudget warnings_{1};

  mutable Mutex mutex_;
  std::map<int, Peer> open_ ABSL_GUARDED_BY(mutex_);
  std::map<Peer, size_t> of_peer_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_TCP_LISTENER_H_
