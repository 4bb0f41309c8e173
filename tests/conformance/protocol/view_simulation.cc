#include "tests/conformance/protocol/view_simulation.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr int64_t kLongestRun = 100'000;  // events
constexpr float kRate = 0.5;
const std::vector<int64_t> kPartSizes = {5, 1, 16, 3};  // elements

std::vector<float> Floats(absl::Span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

ViewSimulation::ViewSimulation(const Options& options, uint32_t seed)
    : options_(options), random_(seed), workers_(options.total_num_replicas) {
  Open();
  for (int i = 0; i < options_.total_num_replicas; ++i) {
    workers_[i].pass.worker = i;
    workers_[i].memory.resize(num_parts());
  }
}

void ViewSimulation::Open() {
  server::ShardState::Options options;
  options.job.replicas_to_aggregate = options_.replicas_to_aggregate;
  options.job.total_num_replicas = options_.total_num_replicas;
  options.job.learning_rate.base = kRate;
  options.job_id = "job";
  options.incarnation = 1;
  options.state_dir = directory_.path();
  const int64_t elements =
      std::accumulate(kPartSizes.begin(), kPartSizes.end(), int64_t{0});
  options.variables = {
      {"w", {elements}, DType::kFloat32, {Initializer::Kind::kConstant, 1, 0}}};
  int64_t offset = 0;
  for (int64_t size : kPartSizes) {
    options.parts.push_back({0, offset, size, DType::kFloat32});
    model_[0].push_back(Values(size, 1.0f));
    offset += size;
  }
  options.returned_parts = returned_;
  shard_ = server::Shard::Create(options).value();
  shard_->Activate(0, {}).value();
  const server::PartValues::Shared shared =
      shard_->state().values().Share().value();
  shared_ = std::make_unique<worker::MappedValues>(
      worker::MappedValues::Open(shared.values, shared.counters).value());
}

float ViewSimulation::Gradient(int worker, int64_t step, int part,
                               size_t element) const {
  return static_cast<float>(
      (7 * worker + 5 * step + 3 * part + static_cast<int64_t>(element)) % 32);
}

ViewSimulation::Values ViewSimulation::Updated(
    int64_t step, int part, const std::set<int>& workers) const {
  Values values = model_.at(step)[part];
  for (size_t i = 0; i < values.size(); ++i) {
    float sum = 0;
    for (int worker : workers) sum += Gradient(worker, step, part, i);
    values[i] -= kRate * (sum / static_cast<float>(workers.size()));
  }
  return values;
}

void ViewSimulation::Run() {
  while (shard_->engine().step() < options_.steps && broken_.empty()) {
    if (++events_ > kLongestRun) {
      Break(absl::StrCat("P6: step ", shard_->engine().step() + 1,
                         " is never made; it waits for ",
                         shard_->engine().WaitsFor()));
    }
    RunOne();
    CheckViews();
  }
  views_.clear();
}

void ViewSimulation::RunOne() {
  if (chaos()) Disturb();
  if (!views_.empty() && Chance(chaos() ? 10 : 60)) {
    std::swap(views_[Random(static_cast<int64_t>(views_.size()))],
              views_.back());
    views_.pop_back();
  }
  while (const auto part = returned_->PopFor(absl::ZeroDuration())) {
    returned_parts_.push_back(*part);
  }
  if (!returned_parts_.empty() && Chance(50)) {
    const int part = returned_parts_.front();
    returned_parts_.pop_front();
    HandleShard(shard_->engine().PartReturned(part));
  }
  if (!late_copies_.empty() && Chance(10)) {
    const LateCopy late = std::move(late_copies_.front());
    late_copies_.pop_front();
    if (!Copy(late.place, late.expected)) ++overtaken_copies_;
  }
  if (!prepared_.empty() && Chance(50)) Commit();
  Act(static_cast<int>(Random(options_.total_num_replicas)));
}

void ViewSimulation::Disturb() {
  const auto somebody = [&] {
    return static_cast<int>(Random(options_.total_num_replicas));
  };
  if (Chance(20)) Read();
  if (Chance(2)) Kill(somebody());
  if (Chance(5)) Replace(somebody());
}

void ViewSimulation::CheckViews() {
  for (const View& view : views_) {
    if (Floats(view.lent.bytes) != view.expected) {
      Break("P4: what somebody reads has been written to");
    }
    if (!Copy(view.lent.place, view.expected)) {
      Break("P4: what somebody reads counts as written to");
    }
  }
}

bool ViewSimulation::Copy(const SharedPlace& place, const Values& expected) {
  Values copy(expected.size());
  const absl::Status copied = shared_->Copy(
      place,
      {reinterpret_cast<std::byte*>(copy.data()), copy.size() * sizeof(float)});
  if (copied.ok() && copy != expected) {
    Break("P4: a copy from shared memory is of another step");
  }
  return copied.ok();
}

void ViewSimulation::See(server::LentBytes lent, const Values& expected,
                         const std::string& who) {
  if (Floats(lent.bytes) != expected) {
    Break(absl::StrCat("P4: ", who, " sees values that are not of its step"));
  }
  if (chaos() && Chance(10)) late_copies_.push_back({lent.place, expected});
  if (chaos() && Chance(30)) views_.push_back({std::move(lent), expected});
}

// A reader that has no part in the training.
void ViewSimulation::Read() {
  const int first = static_cast<int>(Random(num_parts()));
  const int count = 1 + static_cast<int>(Random(num_parts() - first));
  absl::StatusOr<server::Shard::Values> values = shard_->Pull(first, count, -1);
  if (!values.ok()) {
    Break(values.status().ToString());
    return;
  }
  for (int i = 0; i < count; ++i) {
    See(std::move(values->parts[i]), model_.at(values->step)[first + i],
        "a reader");
  }
}

void ViewSimulation::Kill(int index) {
  Worker& worker = workers_[index];
  const server::Gate::Expired expired =
      shard_->gate()->Expire(index, worker.incarnation);
  HandleShard(shard_->engine().StartAttempt(expired.step, expired.attempt));
  const uint64_t incarnation = worker.incarnation + 1;
  worker = Worker();
  worker.incarnation = incarnation;
  worker.pass = {index, incarnation, -1, 0, 0};
  worker.memory.resize(num_parts());
  HandleGate(expired.answers);
}

void ViewSimulation::Replace(int index) {
  const server::Gate::Replaced replaced =
      shard_->gate()->Replace(index, shard_->gate()->global_step(),
                              shard_->engine().arrivals().attempt);
  if (!replaced.by.has_value()) return;
  HandleShard(shard_->engine().StartAttempt(replaced.step, replaced.attempt));
  HandleGate(replaced.answers);
}

void ViewSimulation::Commit() {
  const auto [step, attempt] = prepared_.front();
  prepared_.pop_front();
  const std::vector<int> members = shard_->gate()->Members();
  const auto tokens = shard_->gate()->Commit(step + 1, attempt);
  if (!tokens.ok()) return;  // the attempt has been given up
  for (int part = 0; part < num_parts(); ++part) {
    const std::set<int>& set = pushed_[{step, attempt, part}];
    if (std::vector<int>(set.begin(), set.end()) != members) {
      Break(absl::StrCat("part ", part, " of step ", step + 1,
                         " is not made of the step's set"));
    }
    model_[step + 1].push_back(Updated(step, part, set));
  }
  const auto committed = shard_->engine().Commit(step + 1, attempt);
  if (!committed.ok()) Break(committed.status().ToString());
  HandleGate(*tokens);
}

}  // namespace lockstep
