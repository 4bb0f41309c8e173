#include "common/metrics_server.h"

#include <httplib.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const std::string& address, Source source) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == 0 || colon == std::string::npos ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics address \"", address,
                     "\": expected host:port with a port of 0 to 65535, as in "
                     "127.0.0.1:9100"));
  }
  const std::string host = address.substr(0, colon);
  auto server = std::make_unique<httplib::Server>();
  server->new_task_queue = [] { return new httplib::ThreadPool(1); };
  // The default lets two processes share a port.
  server->set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server->Get("/metrics", [source = std::move(source)](
                              const httplib::Request&,
                              httplib::Response& response) {
    response.set_content(FormatMetrics(source()), "text/plain; version=0.0.4");
  });
  if (port == 0) {
    port = server->bind_to_any_port(host.c_str());
  } else if (!server->bind_to_port(host.c_str(), port)) {
    port = -1;
  }
  if (port < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen for metrics on ", address,
                     "; is the port taken, or the host another machine's?"));
  }
  return std::unique_ptr<MetricsServer>(
      new MetricsServer(std::move(server), port));
}

MetricsServer::MetricsServer(std::unique_ptr<httplib::Server> server, int port)
    : server_(std::move(server)), port_(port), thread_([this] {
        server_->listen_after_bind();
        ended_ = true;
      }) {}

MetricsServer::~MetricsServer() {
  // A thread that has not begun to listen cannot be told to stop.
  while (!server_->is_running() && !ended_)
    absl::SleepFor(absl::Milliseconds(1));
  server_->stop();
  thread_.join();
}

}  // namespace lockstep
