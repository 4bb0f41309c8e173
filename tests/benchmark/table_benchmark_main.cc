// The cost of tables. Two figures, each of one run:
//
//   * a step of a batch that touches 32 rows per worker, with a table of 1 GiB
//     and with one of 64 MiB in turn, on a server without a network: the mean
//     of two gradients, Adagrad, commit, and reading the rows again
//   * the bytes of a pull of 212,992 ids drawn by Zipf's law with exponent
//     1.05 from 2^20 rows, de-duplicated and as drawn, request and answer

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/v1/parameter.pb.h"
#include "server/shard/shard.h"
#include "worker/client/chunk_messages.h"
#include "worker/client/chunks/row_route.h"
#include "worker/data/epoch_shuffle.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep {
namespace {

constexpr int64_t kWidth = 64;
constexpr int64_t kRowBytes = kWidth * 4;
constexpr int kRows = 32;
constexpr int kRounds = 400;
constexpr int kWarmUp = 40;
constexpr double kSizeGoal = 1.25;
constexpr double kRequestGoal = 0.35;

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  exit(1);
}

class BigTable {
 public:
  explicit BigTable(int64_t rows) : rows_(rows) {
    std::string directory = "/dev/shm/lockstep_table_XXXXXX";
    if (mkdtemp(directory.data()) == nullptr) exit(1);
    directory_ = directory;
    server::ShardState::Options options;
    options.job.replicas_to_aggregate = 2;
    options.job.total_num_replicas = 2;
    options.job.optimizer.kind = OptimizerConfig::Kind::kAdagrad;
    options.job_id = "job";
    options.incarnation = 1;
    options.state_dir = directory_;
    options.variables = {
        {"t", {rows, kWidth}, DType::kFloat32, {}, RowCut::kDiv}};
    options.parts = {{0, 0, rows * kWidth, DType::kFloat32, kWidth, 1}};
    auto shard = server::Shard::Create(options);
    Require(shard.status());
    shard_ = *std::move(shard);
    Require(shard_->Activate(0, {}).status());
  }
  ~BigTable() {
    Require(shard_->state().Remove());
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
  }

  // Microseconds of one step.
  double Step(worker::SplitMix64& random) {
    std::vector<server::Push> pushes;
    std::vector<int64_t> last;
    for (int worker = 0; worker < 2; ++worker) {
      std::vector<int64_t> rows;
      for (int i = 0; i < kRows; ++i) {
        rows.push_back(static_cast<int64_t>(random.Below(rows_)));
      }
      std::sort(rows.begin(), rows.end());
      rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
      auto values =
          std::make_shared<std::vector<float>>(rows.size() * kWidth, 0.01f);
      server::PartGradient gradient{
          {{reinterpret_cast<const std::byte*>(values->data()),
            values->size() * sizeof(float)}},
          values};
      gradient.rows = server::GradientRows{
          rows, {static_cast<int64_t>(rows.size()), kWidth}};
      server::Push push{{worker, 1, step_, step_ + 1, 0}, 1, 0, {}};
      push.gradients.push_back(std::move(gradient));
      pushes.push_back(std::move(push));
      last = rows;
    }
    std::vector<std::byte> out(last.size() * kRowBytes);
    const auto began = std::chrono::steady_clock::now();
    for (server::Push& push : pushes) {
      const uint64_t ticket = push.pass.worker;
      Require(shard_->engine().AddPush(ticket, std::move(push)).status());
    }
    Require(shard_->engine().Commit(step_ + 1, 1).status());
    Require(shard_->PullRows(0, last, step_ + 1, absl::MakeSpan(out)).status());
    const std::chrono::duration<double, std::micro> took =
        std::chrono::steady_clock::now() - began;
    ++step_;
    return took.count();
  }

 private:
  const int64_t rows_;
  std::string directory_;
  std::unique_ptr<server::Shard> shard_;
  int64_t step_ = 0;
};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

const char* Met(double ratio, double goal) {
  return ratio <= goal ? "yes" : "NO";
}

void CompareSizes() {
  BigTable large((int64_t{1} << 30) / kRowBytes);
  BigTable small((int64_t{64} << 20) / kRowBytes);
  worker::SplitMix64 random(1);
  std::vector<double> of_large;
  std::vector<double> of_small;
  for (int round = 0; round < kWarmUp + kRounds; ++round) {
    const double first = large.Step(random);
    const double second = small.Step(random);
    if (round < kWarmUp) continue;
    of_large.push_back(first);
    of_small.push_back(second);
  }
  const double ratio = Median(of_large) / Median(of_small);
  std::printf(
      "step of 32 rows per worker: 1 GiB %.1f us, 64 MiB %.1f us, "
      "ratio %.2f, goal <= %.2f, met: %s\n",
      Median(of_large), Median(of_small), ratio, kSizeGoal,
      Met(ratio, kSizeGoal));
}

// Draws ids by Zipf's law, by rejection-free inversion over 2^20 ranks.
std::vector<int64_t> DrawZipf(int64_t count, int64_t rows) {
  std::vector<double> cumulative;
  double sum = 0;
  for (int64_t rank = 1; rank <= rows; ++rank) {
    sum += std::pow(static_cast<double>(rank), -1.05);
    cumulative.push_back(sum);
  }
  worker::SplitMix64 random(1);
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    const double at = static_cast<double>(random.Next() >> 11) * 0x1p-53 * sum;
    ids.push_back(
        std::upper_bound(cumulative.begin(), cumulative.end() - 1, at) -
        cumulative.begin());
  }
  return ids;
}

// Returns the bytes of the request and of the values in its answer.
double PullBytes(const worker::RoutedRows& routed) {
  v1::PullRequest request;
  worker::AddRows(routed, *request.mutable_rows());
  return static_cast<double>(request.ByteSizeLong() +
                             routed.rows.size() * kRowBytes);
}

void CompareRequests() {
  const int64_t rows = int64_t{1} << 20;
  const std::vector<int64_t> ids = DrawZipf(212992, rows);
  const VariableSpec table = {
      "t", {rows, kWidth}, DType::kFloat32, {}, RowCut::kDiv};
  worker::ParameterMemory memory = *worker::ParameterMemory::Make(
      {table}, worker::ParameterMemory::Gradients::kPrivate);
  Require(memory.ChooseRows(0, ids));
  worker::RoutedRows plain;
  plain.rows = ids;
  const Part part{0, 0, rows * kWidth, 0, 0};
  const double chosen =
      PullBytes(worker::RouteRows(part, table, memory.rows(0).ids));
  const double ratio = chosen / PullBytes(plain);
  std::printf(
      "pull of 212,992 ids by Zipf(1.05): %.1f MB de-duplicated, "
      "%.1f MB plain, ratio %.3f, goal <= %.2f, met: %s\n",
      chosen / 1e6, PullBytes(plain) / 1e6, ratio, kRequestGoal,
      Met(ratio, kRequestGoal));
}

}  // namespace
}  // namespace lockstep

int main() {
  lockstep::CompareRequests();
  lockstep::CompareSizes();
  return 0;
}
