#include "common/observe/metrics_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/cluster/host_port.h"

namespace lockstep {
namespace {

using std::chrono::steady_clock;

constexpr int kThreads = 4;
constexpr size_t kLongestQueue = 16;
constexpr ConnectionLimits kConnections = {32, 24};
constexpr size_t kLongestRequest = 8 << 10;
// Time limit of a request, and of its answer: a slow peer holds a thread for so
// long at most.
constexpr std::chrono::seconds kReadTime(1);
constexpr std::chrono::seconds kWriteTime(2);

// Waits until the socket is ready; false after `deadline`.
bool Await(int socket, int16_t event, steady_clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - steady_clock::now());
    if (left.count() < 0) return false;
    pollfd ready = {socket, event, 0};
    // Rounded up, so that poll() does not return before the deadline.
    const int count = poll(&ready, 1, static_cast<int>(left.count()) + 1);
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

// Reads a request up to the end of its headers; empty if it does not arrive in
// time.
std::string ReadRequest(int socket) {
  const auto deadline = steady_clock::now() + kReadTime;
  std::string request;
  while (!absl::StrContains(request, "\r\n\r\n")) {
    char buffer[1024];
    if (request.size() > kLongestRequest || !Await(socket, POLLIN, deadline)) {
      return "";
    }
    const ssize_t count = recv(socket, buffer, sizeof(buffer), 0);
    if (count == 0 || (count < 0 && errno != EAGAIN)) return "";
    if (count > 0) request.append(buffer, static_cast<size_t>(count));
  }
  return request;
}

void Write(int socket, const std::string& answer) {
  const auto deadline = steady_clock::now() + kWriteTime;
  size_t sent = 0;
  while (sent < answer.size() && Await(socket, POLLOUT, deadline)) {
    const ssize_t count =
        send(socket, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN) return;
    if (count > 0) sent += static_cast<size_t>(count);
  }
}

void Close(int socket) {
  // shutdown() first: TcpListener counts the connection until both directions
  // are shut down, and holds a duplicate of the socket.
  shutdown(socket, SHUT_RDWR);
  close(socket);
}

std::string Response(absl::string_view status, absl::string_view type,
                     absl::string_view body) {
  return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Type: ", type,
                      "\r\nContent-Length: ", body.size(),
                      "\r\nConnection: close\r\n\r\n", body);
}

// True if the first line of a request is a GET of `path`, with or without a
// query.
bool Asks(absl::string_view line, absl::string_view path) {
  return absl::ConsumePrefix(&line, "GET ") &&
         absl::ConsumePrefix(&line, path) &&
         (absl::StartsWith(line, " ") || absl::StartsWith(line, "?"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const std::string& address, Source source, Health health) {
  if (!ParseHostPort(address).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics address \"", address,
                     "\": expected host:port with a port of 0 to 65535, as in "
                     "127.0.0.1:9100"));
  }
  auto listener = TcpListener::Listen(address, kConnections);
  if (!listener.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen for metrics on ", address,
                     "; is the port taken, or the host another machine's?"));
  }
  return std::unique_ptr<MetricsServer>(new MetricsServer(
      *std::move(listener), std::move(source), std::move(health)));
}

MetricsServer::MetricsServer(std::unique_ptr<TcpListener> listener,
                             Source source, Health health)
    : listener_(std::move(listener)),
      health_(std::move(health)),
      source_(std::move(source)) {
  for (int i = 0; i < kThreads; ++i) {
    threads_.emplace_back([this] { ServeAll(); });
  }
  listener_->Start([this](int, int socket) { Enqueue(socket); });
}

MetricsServer::~MetricsServer() {
  // First, so that no further socket is queued.
  listener_->Stop();
  {
    MutexLock lock(mutex_);
    quit_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
  MutexLock lock(mutex_);
  for (const int socket : waiting_) Close(socket);
}

void MetricsServer::Enqueue(int socket) {
  MutexLock lock(mutex_);
  if (waiting_.size() >= kLongestQueue) return Close(socket);
  waiting_.push_back(socket);
  changed_.Signal();
}

void MetricsServer::ServeAll() {
  while (true) {
    int socket = -1;
    {
      MutexLock lock(mutex_);
      while (waiting_.empty() && !quit_) changed_.Wait(mutex_);
      if (quit_) return;
      socket = waiting_.front();
      waiting_.pop_front();
    }
    const std::string request = ReadRequest(socket);
    if (!request.empty()) Write(socket, Answer(request));
    Close(socket);
  }
}

std::string MetricsServer::Answer(const std::string& request) {
  const absl::string_view line =
      absl::string_view(request).substr(0, request.find("\r\n"));
  if (Asks(line, "/healthz")) {
    const absl::Status health =
        health_ == nullptr ? absl::OkStatus() : health_();
    if (health.ok()) return Response("200 OK", "text/plain", "ok\n");
    return Response("503 Service Unavailable", "text/plain",
                    absl::StrCat(health.message(), "\n"));
  }
  if (!Asks(line, "/metrics")) {
    return absl::StartsWith(line, "GET ")
               ? Response("404 Not Found", "text/plain", "see /metrics\n")
               : Response("405 Method Not Allowed", "text/plain",
                          "only GET /metrics\n");
  }
  // `source_` need not be thread-safe.
  MutexLock lock(source_mutex_);
  return Response("200 OK", "text/plain; version=0.0.4",
                  FormatMetrics(source_()));
}

}  // namespace lockstep
