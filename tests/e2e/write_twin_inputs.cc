// Writes the initial values and batches of a softmax job's workers, for
// twin_run.py:
//
//   write_twin_inputs SEED EXAMPLES PIXELS CLASSES BATCH_SIZE WORKERS STEPS
//
// One JSON object a line: {"variable", "shape", "values"} for each variable of
// the model, then {"worker", "step", "examples"} for each batch.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "server/state/init/initializer.h"
#include "worker/data/batch_schedule.h"
#include "worker/models/zoo/registry.h"

namespace lockstep {
namespace {

struct Numbers {
  int64_t seed, examples, pixels, classes, batch_size, workers, steps;
};

absl::Status WriteVariables(const Numbers& numbers) {
  ModelConfig config;
  config.kind = "softmax";
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<worker::Model> model,
      worker::MakeModel(config, {1, numbers.pixels, 1, numbers.classes}));
  for (const VariableSpec& variable : model->variables()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        server::InitialValues initial,
        server::InitialValues::Make(variable,
                                    static_cast<uint64_t>(numbers.seed)));
    std::vector<float> values(NumElements(variable.shape));
    LOCKSTEP_RETURN_IF_ERROR(
        initial.Fill(0, {reinterpret_cast<std::byte*>(values.data()),
                         values.size() * sizeof(float)}));
    const auto exact = [](std::string* out, float value) {
      absl::StrAppend(out, absl::StrFormat("%.9g", value));
    };
    std::printf("{\"variable\":\"%s\",\"shape\":%s,\"values\":[%s]}\n",
                variable.name.c_str(), ShapeString(variable.shape).c_str(),
                absl::StrJoin(values, ",", exact).c_str());
  }
  return absl::OkStatus();
}

absl::Status WriteBatches(const Numbers& numbers) {
  for (int64_t worker = 0; worker < numbers.workers; ++worker) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        worker::BatchSchedule schedule,
        worker::BatchSchedule::Create(
            {numbers.examples, numbers.batch_size, numbers.workers, worker,
             static_cast<uint64_t>(numbers.seed), 0}));
    for (int64_t step = 0; step < numbers.steps; ++step) {
      LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                                schedule.Batch(step));
      std::printf("{\"worker\":%d,\"step\":%d,\"examples\":[%s]}\n",
                  static_cast<int>(worker), static_cast<int>(step),
                  absl::StrJoin(ids, ",").c_str());
    }
  }
  return absl::OkStatus();
}

absl::Status Write(int argc, char** argv) {
  int64_t values[7];
  if (argc != 8) return absl::InvalidArgumentError("7 numbers are needed");
  for (int i = 0; i < 7; ++i) {
    if (!absl::SimpleAtoi(argv[i + 1], &values[i])) {
      return absl::InvalidArgumentError(absl::StrCat(argv[i + 1], "?"));
    }
  }
  const Numbers numbers{values[0], values[1], values[2], values[3],
                        values[4], values[5], values[6]};
  LOCKSTEP_RETURN_IF_ERROR(WriteVariables(numbers));
  return WriteBatches(numbers);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  const absl::Status status = lockstep::Write(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 2;
}
