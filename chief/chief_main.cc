#include <iostream>
#include <memory>
#include <string>

#include "chief/chief.h"
#include "common/flags/flag_parser.h"
#include "common/program/main_support.h"
#include "common/rpc/server.h"
#include "common/rpc/service_manager.h"

namespace lockstep::chief {
namespace {

int Main(const CommonFlags& flags, const JobFlags& job_flags) {
  SignalGate signals;
  absl::StatusOr<Cluster> cluster =
      StartProcess(flags, {TaskType::kChief}, "chief");
  if (!cluster.ok()) return Refuse(cluster.status());
  absl::StatusOr<JobConfig> job = LoadJob(job_flags);
  if (!job.ok()) return Refuse(job.status());
  absl::StatusOr<std::unique_ptr<Chief>> chief = Chief::Make(
      *cluster, *job, DrawIncarnation(), Clock::Real(), job_flags.beginning);
  if (!chief.ok()) return Refuse(chief.status());
  absl::StatusOr<std::string> address = cluster->Address(cluster->self());
  if (!address.ok()) return Refuse(address.status());
  absl::StatusOr<std::unique_ptr<GrpcServer>> server = StartListening(
      [&] { return GrpcServer::Start(*address, (*chief)->services()); });
  if (!server.ok()) return Refuse(server.status());
  absl::StatusOr<std::unique_ptr<StatusServer>> status_server = ServeStatus(
      flags, *cluster, [&] { return (*chief)->Metrics(); },
      [&] { return (*chief)->RecordForPage(); });
  if (!status_server.ok()) return Refuse(status_server.status());
  const ServiceManagerClient service_manager(*address);
  signals.SetHandler(
      [&](const std::string& reason) { (*chief)->RequestStop(reason); });
  const absl::Status status = (*chief)->Run();
  // The handler refers to the chief, which ends below.
  signals.SetHandler(nullptr);
  return EndProcess(flags, status);
}

}  // namespace
}  // namespace lockstep::chief

int main(int argc, char** argv) {
  lockstep::TuneProcess();
  lockstep::CommonFlags flags;
  lockstep::JobFlags job_flags;
  lockstep::FlagParser parser(
      "chief",
      "Drives one training job: sends the job to its members, places the "
      "variables, commits each step and writes checkpoints.");
  lockstep::AddCommonFlags(parser, flags);
  lockstep::AddJobFlags(parser, job_flags);
  if (auto code = parser.Parse(argc, argv, std::cout, std::cerr)) return *code;
  return lockstep::chief::Main(flags, job_flags);
}
