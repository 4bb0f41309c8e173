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
#include "common/base/mutex.h"

namespace lockstep {

// How many connections a process serves at a time.
struct ConnectionLimits {
  size_t all = 8192;
  size_t of_one_address = 4096;  // an IPv6 network of /64 counts as one

  // As many as `descriptors`, the process's limit of open files, leaves room
  // for beside what else the process opens: a connection takes two.
  static ConnectionLimits For(size_t descriptors);
};

// TcpListener accepts TCP connections and hands their sockets on. It counts
// those that are open, and closes at once what comes beyond the limits, so that
// no peer can have all of this process's descriptors. When descriptors run out
// all the same, it goes on once some are back: gRPC's own listener gives up for
// good where accept4() fails once.
//
// Threads: accepts in a thread of its own; Stop() may be called in any.
class TcpListener {
 public:
  // Takes over a socket that does not block. `listener` is the socket that it
  // came through.
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

  // Call once. A connection counts until both of its directions are shut down,
  // as they are when its socket is closed by shutdown() and close().
  void Start(Take take);

  // Gives the port up. Returns when `take` is not running and will not run
  // again. Connections stay
  // as they are.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  size_t connections() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What epoll calls a connection by: the watched duplicate of its socket,
  // which shares no number with another one as long as it is open.
  using Peer = std::string;

  explicit TcpListener(const ConnectionLimits& limits) : limits_(limits) {}

  absl::Status Bind(const std::string& host, int port);
  void Run(const Take& take);
  // False if no descriptors are left.
  bool AcceptAll(int listener, const Take& take) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Accepted(int listener, int socket, const Peer& peer, const Take& take)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoom(const Peer& peer) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(int duplicate) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether to ask for new connections.
  void Watch(bool on);

  const ConnectionLimits limits_;
  int port_ = 0;
  std::vector<int> listeners_;
  int epoll_ = -1;
  int wake_ = -1;  // readable once Stop() was called
  absl::Time warned_ = absl::InfinitePast();

  mutable Mutex mutex_;
  std::map<int, Peer> open_ ABSL_GUARDED_BY(mutex_);
  std::map<Peer, size_t> of_peer_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_TCP_LISTENER_H_
