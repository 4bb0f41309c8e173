#include "tests/testing/tls_tunnel.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace lockstep::testing {
namespace {

constexpr int kPoll = 50;  // milliseconds, until quit_ is seen
// ALPN's list of one protocol.
constexpr unsigned char kHttp2[] = {2, 'h', '2'};

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool SendAll(int socket, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t sent = send(socket, bytes, count, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    count -= static_cast<size_t>(sent);
  }
  return true;
}

// Moves bytes both ways until a side ends, or `quit`.
void Move(SSL* ssl, int server, int client, const std::atomic<bool>& quit) {
  char buffer[16 << 10];
  while (!quit) {
    pollfd ready[] = {{server, POLLIN, 0}, {client, POLLIN, 0}};
    if (SSL_pending(ssl) == 0 && poll(ready, 2, kPoll) == 0) continue;
    if (SSL_pending(ssl) > 0 || ready[0].revents != 0) {
      const int got = SSL_read(ssl, buffer, sizeof(buffer));
      if (got <= 0 || !SendAll(client, buffer, static_cast<size_t>(got))) {
        return;
      }
    }
    if (ready[1].revents != 0) {
      const ssize_t got = recv(client, buffer, sizeof(buffer), 0);
      if (got <= 0 || SSL_write(ssl, buffer, static_cast<int>(got)) <= 0) {
        return;
      }
    }
  }
}

}  // namespace

TlsTunnel::TlsTunnel(int server_port, const std::string& tls_dir)
    : server_port_(server_port), context_(SSL_CTX_new(TLS_client_method())) {
  signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to connections that are closed
  SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION);
  SSL_CTX_set_alpn_protos(context_, kHttp2, sizeof(kHttp2));
  EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context_,
                                               (tls_dir + "/tls.crt").c_str()),
            1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey_file(
                context_, (tls_dir + "/tls.key").c_str(), SSL_FILETYPE_PEM),
            1);
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own = Loopback(0);
  socklen_t size = sizeof(own);
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&own), size), 0);
  EXPECT_EQ(listen(listener_, SOMAXCONN), 0);
  getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &size);
  port_ = ntohs(own.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

TlsTunnel::~TlsTunnel() {
  quit_ = true;
  acceptor_.join();
  for (std::thread& carrier : carriers_) carrier.join();
  close(listener_);
  SSL_CTX_free(context_);
}

void TlsTunnel::Accept() {
  while (!quit_) {
    pollfd ready = {listener_, POLLIN, 0};
    if (poll(&ready, 1, kPoll) != 1) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    carriers_.emplace_back([this, client] { Carry(client); });
  }
}

void TlsTunnel::Carry(int client) {
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in to = Loopback(server_port_);
  // A server that closes or is silent must not hold this thread for ever.
  const timeval patience = {20, 0};
  setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(server, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  SSL* ssl = SSL_new(context_);
  if (connect(server, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) ==
          0 &&
      SSL_set_fd(ssl, server) == 1 && SSL_connect(ssl) == 1) {
    ++handshakes_;
    Move(ssl, server, client, quit_);
  }
  SSL_free(ssl);
  close(server);
  close(client);
}

}  // namespace lockstep::testing
