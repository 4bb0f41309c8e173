// A program with a loop of its own, as users have: its variables begin with
// values of its own, and most passes lack the gradient of one of them.
//
//   "a", "b"  a gradient in each pass
//   "rare"    in every fifth step, of worker 1 or the only one
//   "never"   none
//
// All gradients follow from step, share, worker and value, so that a job whose
// workers all count ends with the same bits however it is disturbed.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/fault_points.h"
#include "worker/session/session.h"

namespace {

using lockstep::DType;
using lockstep::worker::Session;
using lockstep::worker::SessionStep;
using lockstep::worker::SessionVariable;

constexpr size_t kRare = 2;
constexpr size_t kNever = 3;

bool HasGradient(size_t variable, const SessionStep& step,
                 const lockstep::worker::SessionJob& job) {
  if (variable == kNever) return false;
  return variable != kRare ||
         (step.number % 5 == 2 && job.worker == job.num_workers - 1);
}

absl::Status Compute(Session& session, const SessionStep& step,
                     size_t num_variables) {
  const lockstep::worker::SessionJob job = session.job();
  // The last layer's first, as a backward pass has them.
  for (size_t v = num_variables; v-- > 0;) {
    if (!HasGradient(v, step, job)) {
      if (absl::Status status = session.Absent(v); !status.ok()) return status;
      continue;
    }
    const auto* value = reinterpret_cast<const float*>(session.value(v).data());
    auto* gradient = reinterpret_cast<float*>(session.gradient(v).data());
    const size_t count = session.gradient(v).size() / sizeof(float);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t mixed =
          ((step.number * 31 + job.worker) * 31 + step.share) * 31 + i + v;
      gradient[i] = value[i] * 0.125F +
                    static_cast<float>(mixed * 2654435761 % 64) - 31.5F;
    }
    if (absl::Status status = session.Ready(v); !status.ok()) return status;
  }
  return session.Finish(/*loss=*/0, /*examples=*/1);
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (const absl::Status armed = lockstep::ArmFaultFromEnvironment();
      !armed.ok()) {
    return Fail(armed);
  }
  Session::Options options;
  options.log_level = "info";
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--tls_dir=")) {
      options.tls_dir = std::string(argument);
    }
  }
  const std::vector<float> ones(64, 1);
  std::vector<SessionVariable> variables;
  for (const auto& [name, count] : std::vector<std::pair<const char*, int64_t>>{
           {"a", 64}, {"b", 24}, {"rare", 40}, {"never", 8}}) {
    variables.push_back({{.name = name, .shape = {count}},
                         {reinterpret_cast<const std::byte*>(ones.data()),
                          static_cast<size_t>(count) * sizeof(float)}});
  }
  auto session = Session::Join(options, variables);
  if (!session.ok()) return Fail(session.status());
  while (true) {
    SessionStep step;
    const auto turn = (*session)->Next(absl::Seconds(1), step);
    if (!turn.ok()) return Fail(turn.status());
    if (*turn == Session::Turn::kEnded) break;
    if (*turn != Session::Turn::kStep) continue;
    const absl::Status computed = Compute(**session, step, variables.size());
    if (!computed.ok() && !absl::IsAborted(computed)) return Fail(computed);
  }
  return (*session)->exit_code();
}
