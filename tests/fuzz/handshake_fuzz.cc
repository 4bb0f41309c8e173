// The first bytes of a connection, in both directions: a server with
// certificates stays up and lets no client in, and a client that looks at a
// server is told that there is none.

#include <stdlib.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/rpc/own_server.h"
#include "common/rpc/security/certificates/peer_probe.h"
#include "common/rpc/security/transport/transport_security.h"
#include "common/rpc/server.h"
#include "spdlog/spdlog.h"
#include "tests/testing/raw_socket.h"
#include "tests/testing/test_certificates.h"

namespace {

using lockstep::testing::RawSocket;

constexpr int kAskAfter = 64;  // inputs

void Require(bool condition) {
  if (!condition) std::abort();
}

// A server with certificates, whose health service can be asked.
struct Target {
  Target() {
    spdlog::set_level(spdlog::level::off);
    std::string directory = "/tmp/lockstep-fuzz-XXXXXX";
    Require(mkdtemp(directory.data()) != nullptr);
    const lockstep::testing::TestAuthority authority;
    lockstep::testing::WriteTlsFiles(directory, authority.Files("chief/0"));
    auto security = lockstep::TransportSecurity::Load({directory, ""});
    Require(security.ok());
    std::filesystem::remove_all(directory);
    lockstep::SetOwnSecurity(*security);
    auto started = lockstep::GrpcServer::Start("127.0.0.1:0", {});
    Require(started.ok());
    server = *std::move(started);
  }
  std::unique_ptr<lockstep::GrpcServer> server;
  int inputs = 0;
};

void BeginAsClient(Target& target, const std::string& bytes) {
  const RawSocket socket(target.server->port());
  socket.Send(bytes, 1000);
  // It has no certificate, so it gets no byte of HTTP/2: a handshake record, an
  // alert, or nothing.
  const std::string answer = socket.Receive(2);
  Require(answer.empty() || answer[0] == 0x16 || answer[0] == 0x15);
  if (++target.inputs % kAskAfter != 0) return;
  Require(
      lockstep::CheckOwnServer(
          absl::StrCat("127.0.0.1:", target.server->port()), absl::Seconds(20))
          .ok());
}

void AnswerAsServer(const std::string& bytes) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own = {};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(own);
  Require(bind(listener, reinterpret_cast<sockaddr*>(&own), size) == 0);
  Require(listen(listener, 1) == 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&own), &size);
  std::thread server([&] {
    const int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    shutdown(client, SHUT_WR);
    char byte = 0;
    while (recv(client, &byte, 1, 0) > 0) {
    }
    close(client);
  });
  Require(!lockstep::ProbePeer("127.0.0.1", ntohs(own.sin_port), nullptr,
                               absl::Seconds(5))
               .ok());
  server.join();
  close(listener);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto& target = *new Target;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  BeginAsClient(target, bytes);
  AnswerAsServer(bytes);
  return 0;
}
