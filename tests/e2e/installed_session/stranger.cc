// A worker written against the installed library: linear regression.

#include <cstdio>
#include <vector>

#include "worker/session/session.h"

using lockstep::worker::Session;
using lockstep::worker::SessionStep;

int main() {
  std::vector<float> start = {0, 0};
  auto session = Session::Join(
      {}, {{{.name = "w", .shape = {2}},
            {reinterpret_cast<const std::byte*>(start.data()), 8}}});
  if (!session.ok()) {
    std::fprintf(stderr, "%s\n",
                 std::string(session.status().message()).c_str());
    return 2;
  }
  const std::vector<float> x = {-2, -1, 0, 1, 2, 3, 4, 5};
  float slope = 0;
  float loss = 0;
  while (true) {
    SessionStep step;
    const auto turn = (*session)->Next(absl::Seconds(1), step);
    if (!turn.ok() || *turn == Session::Turn::kEnded) break;
    if (*turn != Session::Turn::kStep) continue;
    const auto rows = (*session)->Examples(x.size(), step.batch);
    if (absl::IsOutOfRange(rows.status())) {  // the epochs are over
      (*session)->EndInput();
      continue;
    }
    if (!rows.ok()) return 2;
    const auto* w = reinterpret_cast<const float*>((*session)->value(0).data());
    auto* gradient = reinterpret_cast<float*>((*session)->gradient(0).data());
    gradient[0] = gradient[1] = loss = 0;
    slope = w[0];
    const auto count = static_cast<float>(rows->size());
    for (const int64_t row : *rows) {
      const float error = w[0] * x[row] + w[1] - (3 * x[row] + 1);
      gradient[0] += 2 * error * x[row] / count;
      gradient[1] += 2 * error / count;
      loss += error * error / count;
    }
    if (!(*session)->Ready(0).ok()) continue;
    (void)(*session)->Finish(loss, static_cast<int64_t>(rows->size()));
  }
  std::printf("slope %.3f loss %.6f\n", slope, loss);
  return (*session)->exit_code();
}
