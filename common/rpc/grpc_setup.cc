#include "common/rpc/grpc_setup.h"

#include <stdlib.h>

#include <atomic>
#include <string>

#include "absl/synchronization/mutex.h"
#include "common/base/log.h"
#include "google/protobuf/stubs/logging.h"
#include "grpc/support/log.h"

namespace lockstep {
namespace {

std::atomic<bool> exits = false;

// gRPC writes lines of its own form to standard error, about handshakes that
// failed for example. Each call's status says the same to its caller.
void LogOfGrpc(gpr_log_func_args* line) {
  // Threads of gRPC may outlive the log, whose end follows that of main().
  if (!exits) spdlog::debug("gRPC: {}", line->message);
}

// protobuf writes a line for every text of a peer that is no UTF-8, without a
// limit, and refuses the message besides.
void LogOfProtobuf(google::protobuf::LogLevel level, const char* /*file*/,
                   int /*line*/, const std::string& message) {
  if (exits) return;
  const bool ends = level == google::protobuf::LOGLEVEL_FATAL;
  spdlog::log(ends ? spdlog::level::err : spdlog::level::debug, "protobuf: {}",
              message);
}

}  // namespace

void SetUpGrpc() {
  [[maybe_unused]] static const bool once = [] {
    atexit([] { exits = true; });
    gpr_set_log_function(LogOfGrpc);
    google::protobuf::SetLogHandler(LogOfProtobuf);
    // Debian's Abseil keeps a graph of all locks and looks for cycles whenever
    // gRPC takes one: about a fifteenth of a worker's processor time in a small
    // step. This also counts for the program of a user that is a worker.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    return true;
  }();
}

}  // namespace lockstep
