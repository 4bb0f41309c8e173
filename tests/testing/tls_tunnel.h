#ifndef LOCKSTEP_TESTS_TESTING_TLS_TUNNEL_H_
#define LOCKSTEP_TESTS_TESTING_TLS_TUNNEL_H_

#include <sys/socket.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "openssl/ssl.h"

namespace lockstep::testing {

// TlsTunnel listens on 127.0.0.1 and carries each connection to a server with
// TLS, with a certificate: so clients without TLS, such as Http2Peer, can be
// members of a job.
//
// Threads: not thread-safe.
class TlsTunnel {
 public:
  // To a port of 127.0.0.1, with tls.crt and tls.key of a directory.
  TlsTunnel(int server_port, const std::string& tls_dir);
  ~TlsTunnel();
  TlsTunnel(const TlsTunnel&) = delete;
  TlsTunnel& operator=(const TlsTunnel&) = delete;

  int port() const { return port_; }
  // Connections whose handshake has succeeded.
  int handshakes() const { return handshakes_; }

 private:
  void Accept();
  void Carry(int client);

  const int server_port_;
  SSL_CTX* const context_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> handshakes_ = 0;
  std::atomic<bool> quit_ = false;
  std::vector<std::thread> carriers_;  // of acceptor_ until it has ended
  std::thread acceptor_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_TLS_TUNNEL_H_
