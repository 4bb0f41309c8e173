#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/flags/flag_parser.h"
#include "common/program/main_support.h"
#include "common/rpc/poller_limit.h"
#include "common/rpc/service_manager.h"
#include "server/ps_server.h"

namespace lockstep::server {
namespace {

int Main(const CommonFlags& flags, const TransferFlags& transfer,
         PsServer::Options options) {
  SignalGate signals;
  absl::StatusOr<Cluster> cluster =
      StartProcess(flags, {TaskType::kPs}, "ps_server");
  if (!cluster.ok()) return Refuse(cluster.status());
  // Before the first large allocation, which decides the node of the memory.
  const absl::Status placed = StayOnNumaNode(transfer.numa_node);
  if (!placed.ok()) return Refuse(placed);
  PollerLimit pollers(transfer.pollers);
  options.moved = [&](size_t bytes) { pollers.Moved(bytes); };
  options.shared_memory = transfer.shared_memory;
  options.chief_wait = transfer.chief_wait;
  absl::StatusOr<std::unique_ptr<PsServer>> ps = StartListening(
      [&] { return PsServer::Start(*cluster, options, Clock::Real()); });
  if (!ps.ok()) return Refuse(ps.status());
  absl::StatusOr<std::unique_ptr<StatusServer>> status_server =
      ServeStatus(flags, *cluster, [&] { return (*ps)->Metrics(); });
  if (!status_server.ok()) return Refuse(status_server.status());
  const ServiceManagerClient service_manager(
      cluster->Address(cluster->self()).value_or(""));
  signals.SetHandler(
      [&](const std::string& reason) { (*ps)->RequestStop(reason); });
  const absl::Status status = (*ps)->Run();
  // The handler refers to the server, which ends below.
  signals.SetHandler(nullptr);
  return EndProcess(flags, status);
}

}  // namespace
}  // namespace lockstep::server

int main(int argc, char** argv) {
  lockstep::TuneProcess();
  lockstep::CommonFlags flags;
  lockstep::TransferFlags transfer;
  lockstep::server::PsServer::Options options;
  const std::string own_directory =
      absl::StrCat("/dev/shm/lockstep-", geteuid());
  options.state_dir = own_directory;
  lockstep::FlagParser parser(
      "ps_server",
      "Holds a share of a job's variables, sums the gradients that workers "
      "push and updates the variables.");
  lockstep::AddCommonFlags(parser, flags);
  parser.app()
      .add_option("--state_dir", options.state_dir,
                  "Directory on a memory file system for the file that "
                  "holds this server's variables; made if missing. Only "
                  "this user may be able to enter it. The default directory "
                  "is removed when it is empty. \"\": in the process's own "
                  "memory; when the server is killed, the job goes back to "
                  "its last checkpoint.")
      ->default_str("/dev/shm/lockstep-UID");
  parser.app().add_option("--job_name", options.expected_job,
                          "Refuse a chief that runs a job of another name.");
  // For benchmarks: the other servers count as those of other hosts.
  parser.app().add_flag("!--means_on_wire", options.shared_means)->group("");
  lockstep::AddTransferFlags(parser, transfer);
  if (auto code = parser.Parse(argc, argv, std::cout, std::cerr)) return *code;
  options.own_state_dir = options.state_dir == own_directory;
  return lockstep::server::Main(flags, transfer, options);
}
