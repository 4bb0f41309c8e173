#include "worker/data/batch_loader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

// Bytes are converted in runs of this length: compilers turn a loop of fixed
// length into vector instructions even when they optimize for size.
constexpr size_t kRun = 16;

// A division rounds once; a product with 1 / 255 would round twice.
float Scaled(uint8_t byte) { return static_cast<float>(byte) / 255.0f; }

// Without __restrict the compiler must assume that bytes may alias the floats.
void ScaleInto(const uint8_t* __restrict from, size_t count,
               float* __restrict to) {
  const size_t in_runs = count - count % kRun;
  for (size_t begin = 0; begin < in_runs; begin += kRun) {
    for (size_t i = 0; i < kRun; ++i) to[begin + i] = Scaled(from[begin + i]);
  }
  for (size_t i = in_runs; i < count; ++i) to[i] = Scaled(from[i]);
}

absl::Status CheckIds(const Dataset& dataset, absl::Span<const int64_t> ids) {
  for (int64_t id : ids) {
    if (id >= 0 && id < dataset.num_examples) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("example id ", id, " is not in [0, ", dataset.num_examples,
                     "), the examples of this data set"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Batch> LoadBatch(const Dataset& dataset,
                                absl::Span<const int64_t> ids) {
  LOCKSTEP_RETURN_IF_ERROR(CheckIds(dataset, ids));
  const size_t size = static_cast<size_t>(dataset.example_size());
  Batch batch;
  batch.size = static_cast<int64_t>(ids.size());
  batch.images.resize(ids.size() * size);
  batch.labels.reserve(ids.size());
  float* to = batch.images.data();
  for (int64_t id : ids) {
    const size_t example = static_cast<size_t>(id);
    if (dataset.values.empty()) {
      ScaleInto(dataset.bytes.data() + example * size, size, to);
    } else {
      std::copy_n(dataset.values.data() + example * size, size, to);
    }
    to += size;
    batch.labels.push_back(dataset.labels[example]);
  }
  return batch;
}

BatchSource MakeBatchSource(BatchSchedule schedule, const Dataset& dataset) {
  return [schedule = std::move(schedule),
          &dataset](int64_t index) mutable -> absl::StatusOr<Batch> {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                              schedule.Batch(index));
    return LoadBatch(dataset, ids);
  };
}

}  // namespace lockstep::worker
