// The time until all workers of a job have a connection again, each from a
// process of its own: full mutual handshakes with one server, which come at
// once.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/flags/flag_parser.h"
#include "common/rpc/channel.h"
#include "common/rpc/security/transport/transport_security.h"
#include "common/rpc/server.h"
#include "grpcpp/grpcpp.h"
#include "tests/testing/test_certificates.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kPatience(30);

// Files of a server and of a worker, removed at the end.
struct Files {
  Files() {
    std::string path =
        (std::filesystem::temp_directory_path() / "lockstep-XXXXXX").string();
    directory = mkdtemp(path.data()) == nullptr ? "" : path;
    const testing::TestAuthority authority;
    testing::WriteTlsFiles(directory + "/ps", authority.Files("ps/0"));
    testing::WriteTlsFiles(directory + "/worker", authority.Files("worker/*"));
  }
  ~Files() {
    std::error_code ignored;
    if (!directory.empty()) std::filesystem::remove_all(directory, ignored);
  }
  std::string directory;
};

// Connects when a byte can be read from `begin`, writes one to `done`, and ends
// when `end` is closed.
[[noreturn]] void RunWorker(const std::string& directory,
                            const std::string& address, int begin, int done,
                            int end) {
  const auto security =
      TransportSecurity::Load({directory, "", {{address, {TaskType::kPs, 0}}}});
  char byte = 'r';
  if (!security.ok() || write(done, &byte, 1) != 1) _exit(1);
  if (read(begin, &byte, 1) != 1) _exit(1);
  const auto channel = MakeChannel(address, 0, *security);
  if (!channel->WaitForConnected(std::chrono::system_clock::now() +
                                 kPatience)) {
    _exit(1);
  }
  if (write(done, &byte, 1) != 1) _exit(1);
  read(end, &byte, 1);  // until the round is over
  _exit(0);
}

bool ReadBytes(int fd, int count) {
  char byte;
  for (int i = 0; i < count; ++i) {
    if (read(fd, &byte, 1) != 1) return false;
  }
  return true;
}

// The server, in a process of its own as gRPC does not survive a fork.
[[noreturn]] void RunServer(const std::string& directory, int port_out,
                            int end) {
  const auto security = TransportSecurity::Load({directory, ""});
  if (!security.ok()) _exit(1);
  GrpcServer::Options options;
  options.security = *security;
  const auto server = GrpcServer::Start("127.0.0.1:0", {}, options);
  if (!server.ok()) _exit(1);
  const int port = (*server)->port();
  if (write(port_out, &port, sizeof(port)) != sizeof(port)) _exit(1);
  char byte;
  read(end, &byte, 1);
  _exit(0);
}

// Milliseconds until the last of `workers` is connected; -1: some are not.
double Round(const Files& files, int workers) {
  int begin[2];
  int done[2];
  int port_out[2];
  int end[2];  // of the server
  if (pipe(begin) != 0 || pipe(done) != 0 || pipe(port_out) != 0 ||
      pipe(end) != 0) {
    return -1;
  }
  std::vector<pid_t> children;
  const auto start = [&](const auto& run) {
    const pid_t child = fork();
    if (child == 0) {
      close(begin[1]);
      close(end[1]);
      run();
    }
    children.push_back(child);
  };
  start([&] { RunServer(files.directory + "/ps", port_out[1], end[0]); });
  int port = 0;
  bool good = read(port_out[0], &port, sizeof(port)) == sizeof(port);
  const std::string address = absl::StrCat("127.0.0.1:", port);
  for (int i = 0; i < workers; ++i) {
    start([&] {
      RunWorker(files.directory + "/worker", address, begin[0], done[1],
                end[0]);
    });
  }
  close(done[1]);
  good = good && ReadBytes(done[0], workers);  // all are ready
  const absl::Time began = absl::Now();
  const std::string bytes(static_cast<size_t>(workers), 'b');
  good = good && write(begin[1], bytes.data(), bytes.size()) ==
                     static_cast<ssize_t>(bytes.size());
  good = good && ReadBytes(done[0], workers);
  const double ms = absl::ToDoubleMilliseconds(absl::Now() - began);
  close(begin[1]);
  close(end[1]);
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  for (const int fd : {begin[0], done[0], port_out[0], port_out[1], end[0]})
    close(fd);
  return good ? ms : -1;
}

int Main(int workers, int rounds) {
  const Files files;
  std::vector<double> all;
  for (int i = 0; i < rounds; ++i) {
    all.push_back(Round(files, workers));
    if (all.back() < 0) {
      std::cerr << "a process did not connect\n";
      return 1;
    }
  }
  std::sort(all.begin(), all.end());
  std::cout << "{\"workers\": " << workers << ", \"rounds\": " << rounds
            << ", \"milliseconds\": {\"median\": " << all[all.size() / 2]
            << ", \"least\": " << all.front() << ", \"most\": " << all.back()
            << "}}\n";
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  int workers = 64;
  int rounds = 9;
  lockstep::FlagParser parser(
      "handshake_benchmark",
      "Times mutual TLS handshakes of many workers with one server, all at "
      "once. The goal is 1000 ms for 64.");
  parser.app()
      .add_option("--workers", workers, "Processes that connect.")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  parser.app()
      .add_option("--rounds", rounds, "Repetitions.")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  if (auto code = parser.Parse(argc, argv, std::cout, std::cerr)) return *code;
  return lockstep::Main(workers, rounds);
}
