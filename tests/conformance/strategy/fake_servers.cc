#include "tests/conformance/strategy/fake_servers.h"

#include <utility>

namespace lockstep::strategy {

class FakeServers::Job final : public TrainingJob {
 public:
  Job(FakeServers& servers, int worker) : servers_(servers) {
    pass_.worker = worker;
    pass_.workers = servers.workers_;
  }

  absl::StatusOr<std::optional<JobPass>> Next(
      absl::FunctionRef<absl::Status()>) override {
    pass_.step = pass_.batch = passes_++;
    values_ = servers_.ValuesAt(pass_.step);
    return pass_;
  }
  bool has_last_values() const override { return false; }  // they never end
  absl::Span<const std::byte> value(size_t variable) const override {
    return {reinterpret_cast<const std::byte*>(&values_[variable]),
            sizeof(float)};
  }
  absl::Status Push(absl::Span<const std::optional<Value>> gradients,
                    double) override {
    servers_.Push(gradients);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<int64_t>> Examples(int64_t, int64_t) override {
    return absl::InvalidArgumentError("the job has no batch_size");
  }
  void EndInput() override {}  // these jobs have no epochs

 private:
  FakeServers& servers_;
  JobPass pass_;
  int64_t passes_ = 0;
  std::vector<float> values_;
};

std::unique_ptr<TrainingJob> FakeServers::Join(int worker) {
  return std::make_unique<Job>(*this, worker);
}

std::vector<float> FakeServers::ValuesAt(int64_t step) {
  MutexLock lock(mutex_);
  while (step_ < step) changed_.Wait(mutex_);
  return values_;
}

void FakeServers::Push(absl::Span<const std::optional<Value>> gradients) {
  MutexLock lock(mutex_);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].has_value()) {
      sums_[i] += gradients[i]->Elements<float>()[0];
    }
  }
  if (++pushed_ < workers_) return;
  for (size_t i = 0; i < values_.size(); ++i) {
    values_[i] -= learning_rate_ * sums_[i] / static_cast<float>(workers_);
    sums_[i] = 0;
  }
  pushed_ = 0;
  ++step_;
  changed_.SignalAll();
}

}  // namespace lockstep::strategy
