#include <stdlib.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/flags/flag_parser.h"
#include "common/process/process.h"
#include "common/program/main_support.h"
#include "tests/benchmark/recovery_table.h"

namespace lockstep::benchmark {
namespace {

constexpr Victim kVictims[] = {Victim::kWorker, Victim::kServer, Victim::kChief,
                               Victim::kServerWithoutState};

struct Flags {
  std::vector<int64_t> megabytes = {1, 100};
  int rounds = 3;
  std::string directory = std::filesystem::temp_directory_path();
  std::string state_directory = "/dev/shm";
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--megabytes", flags.megabytes,
                 "Sizes of the variables, in MB of 1e6 bytes, comma-separated. "
                 "State needs four times that in --state_dir.")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--rounds", flags.rounds, "How often each is killed.")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--directory", flags.directory,
                 "Where checkpoints go: on the disk that is to be measured.")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_option("--state_dir", flags.state_directory,
                 "Where servers keep their state: a memory file system.")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
}

absl::StatusOr<std::string> MakeDirectory(const std::string& parent) {
  std::string path = parent + "/lockstep-recovery-XXXXXX";
  if (mkdtemp(path.data()) != nullptr) return path;
  return absl::UnavailableError(
      absl::StrCat("no directory can be made in ", parent));
}

absl::Status MeasureSize(const Flags& flags, int64_t megabytes,
                         const std::string& directory,
                         const std::string& state_directory,
                         std::vector<RecoveryRow>& rows) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<RecoveryRun> run,
      RecoveryRun::Start(megabytes * 1000000, directory, state_directory));
  const size_t first = rows.size();
  for (Victim victim : kVictims) rows.push_back({megabytes, victim, {}});
  for (int round = 0; round < flags.rounds; ++round) {
    for (size_t i = first; i < rows.size(); ++i) {
      LOCKSTEP_ASSIGN_OR_RETURN(Recovery recovery,
                                run->Measure(rows[i].victim));
      std::cerr << "round " << round + 1 << "/" << flags.rounds << ": "
                << VictimName(rows[i].victim) << ", " << megabytes
                << " MB: " << recovery.going_on << " after its start, "
                << recovery.up << " of that until it was up" << std::endl;
      rows[i].rounds.push_back(recovery);
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureSizeInDirectories(const Flags& flags, int64_t megabytes,
                                      std::vector<RecoveryRow>& rows) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string directory,
                            MakeDirectory(flags.directory));
  absl::StatusOr<std::string> state = MakeDirectory(flags.state_directory);
  absl::Status status = state.status();
  if (status.ok()) {
    status = MeasureSize(flags, megabytes, directory, *state, rows);
  }
  std::error_code ignored;
  if (state.ok()) std::filesystem::remove_all(*state, ignored);
  std::filesystem::remove_all(directory, ignored);
  return status;
}

int Main(const Flags& flags) {
  std::vector<RecoveryRow> rows;
  absl::Status status;
  for (size_t i = 0; i < flags.megabytes.size() && status.ok(); ++i) {
    status = MeasureSizeInDirectories(flags, flags.megabytes[i], rows);
  }
  std::cout << RecoveryLines(rows) << std::flush;
  std::cerr << "\n" << RecoveryTable(rows);
  return status.ok() ? kExitDone : Refuse(status);
}

}  // namespace
}  // namespace lockstep::benchmark

int main(int argc, char** argv) {
  lockstep::benchmark::Flags flags;
  lockstep::FlagParser parser(
      "recovery_benchmark",
      "Kills processes of a running job, starts them again, and times how long "
      "the job takes to go on. Prints one line of JSON per role and size, and "
      "on standard error a table.");
  lockstep::benchmark::AddFlags(parser.app(), flags);
  if (auto code = parser.Parse(argc, argv, std::cout, std::cerr)) return *code;
  return lockstep::benchmark::Main(flags);
}
