#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/numeric/denormals.h"
#include "common/numeric/element_operations.h"
#include "common/numeric/float16.h"
#include "server/update/moving_average.h"
#include "tests/golden/replay.h"

namespace lockstep::golden {
namespace {

// The factor of TensorFlow's bare function for one average, which gets the
// decay as a Python number and so subtracts in float64. It may differ from the
// class's in the last digits.
float FactorOfFunction(double decay) { return static_cast<float>(1.0 - decay); }

// An average; a debiased one, which training does not use, starts at 0 and is
// corrected for that start.
struct Average {
  std::vector<std::byte> average;
  std::vector<std::byte> biased;      // empty without debiasing
  std::vector<std::byte> local_step;  // one element: updates so far, in dtype
};

// Counts one update, and sets the average to biased / (1 - decay ^ updates).
// Apart from what changes the floating-point mode: the compiler could move the
// arithmetic across the change.
template <typename T>
__attribute__((noinline)) void Debias(float factor, Average& average) {
  const T one = FromFloat<T>(1);
  // In the variable's type, as TensorFlow counts: float16 stops at 2048.
  T& step = *reinterpret_cast<T*>(average.local_step.data());
  step = step + one;
  const T weight = one - Power(one - FromFloat<T>(factor), step);
  T* out = reinterpret_cast<T*>(average.average.data());
  for (size_t i = 0; i < average.average.size() / sizeof(T); ++i) {
    out[i] = LoadElement<T>(average.biased.data(), i) / weight;
  }
}

absl::Status UpdateDebiased(DType dtype, float factor,
                            absl::Span<const std::byte> value,
                            Average& average) {
  LOCKSTEP_RETURN_IF_ERROR(server::UpdateAverage(
      dtype, factor, value, absl::MakeSpan(average.biased)));
  const ScopedFlushDenormals flush;
  switch (dtype) {
    case DType::kFloat16:
      Debias<Float16>(factor, average);
      break;
    case DType::kFloat32:
      Debias<float>(factor, average);
      break;
    case DType::kFloat64:
      Debias<double>(factor, average);
      break;
    case DType::kBFloat16:
      throw BadTrace("a debiased average of bfloat16");
  }
  return absl::OkStatus();
}

class MovingAverageReplay {
 public:
  MovingAverageReplay(const Json& scenario, Report& report)
      : scenario_(scenario),
        report_(report),
        via_class_(scenario.at("via") == "class"),
        decay_(ReadNumber(scenario.at("decay"))),
        zero_debias_(scenario.at("zero_debias").get<bool>()) {}

  void Run() {
    const auto dtype = ParseDType(scenario_.at("dtype").get<std::string>());
    report_.Expect("status", scenario_.at("status"),
                   StatusName(dtype.status()));
    if (!dtype.ok() || scenario_.at("status") != "OK") return;
    dtype_ = *dtype;
    Start();
    const Json& steps = scenario_.at("steps");
    for (size_t i = 0; i < steps.size(); ++i) {
      report_.Begin(i, "step");
      RunStep(steps[i]);
    }
  }

 private:
  // The class debiases only averages of tensors, which start at 0; the function
  // debiases all averages.
  bool IsDebiased(const Json& entry) const {
    return zero_debias_ && (!via_class_ || entry.at("kind") == "tensor");
  }

  void Start() {
    const Json& entries = scenario_.at("entries");
    for (size_t i = 0; i < entries.size(); ++i) {
      const Json& entry = entries[i];
      Average average;
      if (entry.at("kind") == "variable") {
        average.average = ReadTensor(dtype_, entry.at("initial")).values;
      } else {
        average.average.resize(
            ReadTensor(dtype_,
                       scenario_.at("initial_state").at(i).at("average"))
                .values.size());
      }
      if (IsDebiased(entry)) {
        average.biased.resize(average.average.size());
        average.local_step.resize(ElementSize(dtype_));
      }
      CheckName(entry);
      Compare(scenario_.at("initial_state").at(i), i, average);
      averages_.push_back(average);
    }
  }

  void CheckName(const Json& entry) {
    const std::string name = entry.at("name");
    report_.Expect(
        "average_name", entry.at("average_name"),
        via_class_ ? absl::StrCat(name, "/ExponentialMovingAverage") : name);
  }

  void RunStep(const Json& step) {
    std::optional<int64_t> updates;
    if (!step.at("num_updates").is_null()) {
      updates = ReadInt(step.at("num_updates"));
    }
    const float factor = via_class_ ? server::AverageFactor(decay_, updates)
                                    : FactorOfFunction(decay_);
    absl::Status status;
    for (size_t i = 0; i < averages_.size(); ++i) {
      const Tensor value = ReadTensor(dtype_, step.at("values").at(i));
      status.Update(Update(factor, value.values, averages_[i]));
    }
    report_.Expect("status", step.at("status"), StatusName(status));
    if (!status.ok()) return;
    for (size_t i = 0; i < averages_.size(); ++i) {
      Compare(step.at("after").at(i), i, averages_[i]);
    }
  }

  absl::Status Update(float factor, absl::Span<const std::byte> value,
                      Average& average) const {
    if (average.biased.empty() && average.local_step.empty()) {
      return server::UpdateAverage(dtype_, factor, value,
                                   absl::MakeSpan(average.average));
    }
    return UpdateDebiased(dtype_, factor, value, average);
  }

  void Compare(const Json& recorded, size_t entry, const Average& average) {
    CompareTensor(absl::StrCat("average ", entry), recorded.at("average"),
                  average.average);
    if (average.local_step.empty()) return;
    CompareTensor(absl::StrCat("biased ", entry), recorded.at("biased"),
                  average.biased);
    report_.Expect("local_step", Text({ReadNumber(recorded.at("local_step"))}),
                   Text(ToDoubles(dtype_, average.local_step)));
  }

  void CompareTensor(absl::string_view what, const Json& recorded,
                     const std::vector<std::byte>& got) {
    report_.ExpectSame(what, dtype_, ReadTensor(dtype_, recorded).values, got,
                       Zeros::kEqual);
  }

  const Json& scenario_;
  Report& report_;
  const bool via_class_;
  const double decay_;
  const bool zero_debias_;
  DType dtype_ = DType::kFloat32;
  std::vector<Average> averages_;
};

}  // namespace

void ReplayMovingAverage(const Json& scenario, Report& report) {
  MovingAverageReplay(scenario, report).Run();
}

}  // namespace lockstep::golden
