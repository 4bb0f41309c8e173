// A program with a loop of its own, as users have: its variables begin with
// values of its own, and most passes lack the gradient of one of them.
//
//   "a", "b"  a gradient in each pass
//   "rare"    in every fifth step, of worker 1 or the only one
//   "never"   none
//
// All gradients follow from step, share, worker and value, so that a job whose
// workers all count ends with the same bits however it is disturbed. With
// --by_share they follow from step, share, seed, examples and value, as the
// job's steps must be shared. With --pass_ms=N each pass takes N milliseconds
// more. With --passes=N the program leaves its loop after N passes.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/fault_points.h"
#include "worker/session/session.h"

namespace {

using lockstep::DType;
using lockstep::worker::Session;
using lockstep::worker::SessionStep;
using lockstep::worker::SessionVariable;

constexpr size_t kRare = 2;
constexpr size_t kNever = 3;

// The source of a pass's data: a worker, or of shared steps a number.
struct Owner {
  uint64_t number = 0;
  bool is_last = false;
};

absl::StatusOr<Owner> OwnerOf(Session& session, const SessionStep& step,
                              bool by_share) {
  const lockstep::worker::SessionJob job = session.job();
  if (!by_share) {
    return Owner{static_cast<uint64_t>(job.worker),
                 job.worker == job.num_workers - 1};
  }
  const absl::StatusOr<std::vector<int64_t>> examples =
      session.Examples(1000, step.batch);
  if (!examples.ok()) return examples.status();
  return Owner{step.seed + static_cast<uint64_t>(examples->front()),
               step.share == 1};
}

bool HasGradient(size_t variable, const SessionStep& step, bool is_last) {
  if (variable == kNever) return false;
  return variable != kRare || (step.number % 5 == 2 && is_last);
}

absl::Status Compute(Session& session, const SessionStep& step,
                     size_t num_variables, bool by_share) {
  const absl::StatusOr<Owner> owner = OwnerOf(session, step, by_share);
  if (!owner.ok()) return owner.status();
  // The last layer's first, as a backward pass has them.
  for (size_t v = num_variables; v-- > 0;) {
    if (!HasGradient(v, step, owner->is_last)) {
      if (absl::Status status = session.Absent(v); !status.ok()) return status;
      continue;
    }
    const auto* value = reinterpret_cast<const float*>(session.value(v).data());
    auto* gradient = reinterpret_cast<float*>(session.gradient(v).data());
    const size_t count = session.gradient(v).size() / sizeof(float);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t mixed =
          ((step.number * 31 + owner->number) * 31 + step.share) * 31 + i + v;
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
  bool by_share = false;
  int pass_ms = 0;
  int passes = std::numeric_limits<int>::max();
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    by_share = by_share || argument == "--by_share";
    if (absl::ConsumePrefix(&argument, "--tls_dir=")) {
      options.tls_dir = std::string(argument);
    }
    if (absl::ConsumePrefix(&argument, "--pass_ms=") &&
        !absl::SimpleAtoi(argument, &pass_ms)) {
      return Fail(absl::InvalidArgumentError("--pass_ms must be a number"));
    }
    if (absl::ConsumePrefix(&argument, "--passes=") &&
        !absl::SimpleAtoi(argument, &passes)) {
      return Fail(absl::InvalidArgumentError("--passes must be a number"));
    }
  }
  const std::vector<float> ones(64, 1);
  std::vector<SessionVariable> variables;
  for (const auto& [name, count] : std::vector<std::pair<const char*, int64_t>>{
           {"a", 64}, {"b", 24}, {"rare", 40}, {"never", 8}}) {
    variables.push_back({{.name = name, .shape = {count}, .initializer = {}},
                         {reinterpret_cast<const std::byte*>(ones.data()),
                          static_cast<size_t>(count) * sizeof(float)}});
  }
  auto session = Session::Join(options, variables);
  if (!session.ok()) return Fail(session.status());
  while (passes > 0) {
    SessionStep step;
    const auto turn = (*session)->Next(absl::Seconds(1), step);
    if (!turn.ok()) return Fail(turn.status());
    if (*turn == Session::Turn::kEnded) break;
    if (*turn != Session::Turn::kStep) continue;
    --passes;
    absl::SleepFor(absl::Milliseconds(pass_ms));
    const absl::Status computed =
        Compute(**session, step, variables.size(), by_share);
    if (!computed.ok() && !absl::IsAborted(computed)) return Fail(computed);
  }
  return (*session)->exit_code();
}
