#include "worker/session/program_workload.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/job_config.h"
#include "common/job/replicas.h"
#include "common/job/variable_settings.h"

namespace lockstep::worker {
namespace {

// The first element of `bytes` whose exponent has all bits set, as NaN and
// infinities have; -1 if there is none.
template <typename Bits>
int64_t FirstNonFinite(absl::Span<const std::byte> bytes, Bits exponent) {
  for (size_t i = 0; i < bytes.size() / sizeof(Bits); ++i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof(Bits), sizeof(Bits));
    if ((bits & exponent) == exponent) return static_cast<int64_t>(i);
  }
  return -1;
}

int64_t FirstNonFinite(absl::Span<const std::byte> bytes, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return FirstNonFinite(bytes, uint16_t{0x7c00});
    case DType::kBFloat16:
      return FirstNonFinite(bytes, uint16_t{0x7f80});
    case DType::kFloat32:
      return FirstNonFinite(bytes, uint32_t{0x7f800000});
    case DType::kFloat64:
      return FirstNonFinite(bytes, uint64_t{0x7ff0000000000000});
  }
  return -1;
}

// Buffers and untrained variables may have any values: an attention mask is of
// infinities.
absl::Status CheckFinite(const JobConfig& job, const VariableSpec& variable,
                         absl::Span<const std::byte> initial) {
  if (variable.buffer || IsUntrained(job, variable)) return absl::OkStatus();
  const int64_t element = FirstNonFinite(initial, variable.dtype);
  if (element < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the initial value of variable \"", variable.name,
                   "\" is NaN or infinite "
                   "at element ",
                   element,
                   ", which refuse_non_finite forbids; begin with "
                   "finite values, make it a buffer or name it in untrained "
                   "if it never changes, or set refuse_non_finite: false"));
}

}  // namespace

// Offers each pass of the loop to the program.
class ProgramWorkload::Source final : public GradientSource {
 public:
  Source(ProgramWorkload& workload,
         std::shared_ptr<const ProgramMembership> membership, bool early)
      : workload_(workload),
        membership_(std::move(membership)),
        may_begin_early_(early) {}

  bool MayBeginEarly() const override { return may_begin_early_; }

  void PrepareEarly(const PassId& pass) override { next_ = pass; }

  absl::Status Prepare(const PassId& pass, int64_t index) override {
    // The job has its values now, from this worker or another one, and the
    // program may overwrite or free the memory of its initial values once an
    // offer reaches it.
    workload_.initial_.clear();
    LOCKSTEP_RETURN_IF_ERROR(workload_.CheckInput(index));
    offer_ = {pass, index, membership_};
    if (!workload_.has_tables_) return absl::OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(ForgetRows());
    return workload_.handover_.OfferRows(offer_);
  }

  absl::Status Begin(int64_t index, GradientPass& pass) override {
    halfway_ = false;
    if (pass.HasAllValues()) {
      return pass.NeedValues(0, workload_.variables_.size());
    }
    LOCKSTEP_RETURN_IF_ERROR(workload_.CheckInput(index));
    LOCKSTEP_RETURN_IF_ERROR(workload_.handover_.OfferEarly(
        {next_, index, membership_, /*early=*/true}, pass));
    halfway_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<GradientResult> Finish(GradientPass& pass) override {
    if (halfway_) return workload_.handover_.Resume(pass);
    return workload_.handover_.OfferPass(offer_, pass);
  }

 private:
  // A table for which the program chooses no rows has none, and no gradient of
  // the pass before.
  absl::Status ForgetRows() {
    for (size_t v = 0; v < workload_.variables_.size(); ++v) {
      if (!workload_.variables_[v].is_table()) continue;
      LOCKSTEP_RETURN_IF_ERROR(membership_->memory->ChooseRows(v, {}));
    }
    return absl::OkStatus();
  }

  ProgramWorkload& workload_;
  const std::shared_ptr<const ProgramMembership> membership_;
  const bool may_begin_early_;
  Handover::Offer offer_;
  PassId next_;           // that may begin early
  bool halfway_ = false;  // the program has made the first half of a pass
};

ProgramWorkload::ProgramWorkload(
    std::vector<VariableSpec> variables,
    std::vector<absl::Span<const std::byte>> initial, bool early)
    : variables_(std::move(variables)),
      initial_(std::move(initial)),
      has_tables_(std::any_of(
          variables_.begin(), variables_.end(),
          [](const VariableSpec& variable) { return variable.is_table(); })),
      early_(early) {}

absl::Status ProgramWorkload::Begin(
    const ChiefClient::Registration& membership) {
  const JobConfig& job = membership.job;
  if (job.model.kind != kExternalModel) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.kind is \"", job.model.kind,
        "\", which the `worker` program "
        "trains; for a program of your own write model { kind: \"external\" } "
        "in the job file"));
  }
  for (size_t v = 0; v < initial_.size() && job.refuse_non_finite; ++v) {
    LOCKSTEP_RETURN_IF_ERROR(CheckFinite(job, variables_[v], initial_[v]));
  }
  if (const int replicas = ReplicasPerWorker(job, /*gpus=*/0);
      has_tables_ && replicas > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "strategy.replicas_per_worker is ", replicas,
        ", but this program has tables, of which one replica a worker pulls "
        "the rows: leave the field out, and start more workers, with "
        "strategy.kind PARAMETER_SERVER or, if no table grows, "
        "MULTI_WORKER_MIRRORED"));
  }
  handover_.Reopen();
  MutexLock lock(mutex_);
  membership_ = membership;
  // A new membership may have another share of the examples.
  schedules_.clear();
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const std::byte>> ProgramWorkload::initial_value(
    size_t variable) {
  if (variable < initial_.size() && !initial_[variable].empty()) {
    return initial_[variable];
  }
  return absl::FailedPreconditionError(
      "this worker has overwritten its initial values with those of a later "
      "step; set checkpoint.directory, so that a job whose servers have lost "
      "their state can go on");
}

absl::StatusOr<std::unique_ptr<GradientSource>> ProgramWorkload::MakeSource(
    std::shared_ptr<ParameterMemory> memory) {
  MutexLock lock(mutex_);
  auto membership = std::make_shared<ProgramMembership>();
  *membership = {membership_, std::move(memory), Replicas()};
  of_source_ = membership;
  last_values_ = {};
  const bool may_begin_early = early_ && !has_tables_ && Replicas() == 1;
  return std::make_unique<Source>(*this, std::move(membership),
                                  may_begin_early);
}

void ProgramWorkload::HasLastValues(const TrainingLoop::LastValues& last) {
  MutexLock lock(mutex_);
  last_values_ = {of_source_, last};
}

ProgramWorkload::LastValues ProgramWorkload::last_values() const {
  MutexLock lock(mutex_);
  return last_values_;
}

int ProgramWorkload::turns() const {
  MutexLock lock(mutex_);
  return Replicas();
}

int ProgramWorkload::Replicas() const {
  // A program has no GPUs of which the job knows.
  return ReplicasPerWorker(membership_.job, /*gpus=*/0);
}

absl::StatusOr<std::vector<BatchSchedule>*> ProgramWorkload::Schedule(
    int64_t num_examples) {
  const auto found = schedules_.find(num_examples);
  if (found != schedules_.end()) {
    found->second.used = ++uses_;
    return &found->second.schedules;
  }
  const JobConfig& job = membership_.job;
  if (job.pass_batch_size() == 0) {
    return absl::InvalidArgumentError(
        "the job has no batch_size, so it chooses no examples; set it (--set "
        "batch_size=N, or in the job's file), or choose the examples in the "
        "program");
  }
  const int replicas = Replicas();
  std::vector<BatchSchedule> schedules;
  for (int r = 0; r < replicas; ++r) {
    BatchSchedule::Options options =
        ScheduleOf(job, num_examples,
                   // As many data shards as there are replicas in the job.
                   int64_t{membership_.data_shard} * replicas + r,
                   int64_t{membership_.num_workers} * replicas);
    // Only one set can count the job's epochs.
    if (main_set_ != 0 && main_set_ != num_examples) options.epochs = 0;
    LOCKSTEP_ASSIGN_OR_RETURN(BatchSchedule schedule,
                              BatchSchedule::Create(options));
    schedules.push_back(std::move(schedule));
  }
  if (main_set_ == 0) main_set_ = num_examples;
  if (schedules_.size() >= kMostSets) {
    // The main set is asked for in each step, but by CheckInput() alone
    // perhaps.
    auto oldest = schedules_.end();
    for (auto set = schedules_.begin(); set != schedules_.end(); ++set) {
      if (set->first == main_set_) continue;
      if (oldest == schedules_.end() ||
          set->second.used < oldest->second.used) {
        oldest = set;
      }
    }
    schedules_.erase(oldest);
  }
  Set& made = schedules_[num_examples];
  made = {std::move(schedules), ++uses_};
  return &made.schedules;
}

absl::StatusOr<ProgramWorkload::Place> ProgramWorkload::PlaceOf(
    int64_t num_examples, int64_t batch) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<BatchSchedule>* const schedules,
                            Schedule(num_examples));
  // Any schedule refuses a negative index.
  if (batch < 0) return Place{schedules->front(), batch};
  return Place{(*schedules)[static_cast<size_t>(batch % Replicas())],
               batch / Replicas()};
}

absl::StatusOr<std::vector<int64_t>> ProgramWorkload::Examples(
    int64_t num_examples, int64_t batch) {
  MutexLock lock(mutex_);
  LOCKSTEP_ASSIGN_OR_RETURN(const Place place, PlaceOf(num_examples, batch));
  return place.schedule.Batch(place.index);
}

absl::Status ProgramWorkload::CheckInput(int64_t batch) {
  MutexLock lock(mutex_);
  if (main_set_ == 0) return absl::OkStatus();
  const absl::StatusOr<Place> place = PlaceOf(main_set_, batch);
  // Any other error is for the program, when it asks for its examples.
  return place.ok() ? place->schedule.Check(place->index) : absl::OkStatus();
}

}  // namespace lockstep::worker
