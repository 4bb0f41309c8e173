#ifndef LOCKSTEP_TESTS_GOLDEN_REPORT_H_
#define LOCKSTEP_TESTS_GOLDEN_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/golden/trace.h"

namespace lockstep::golden {

// One answer that differs from TensorFlow's.
struct Difference {
  std::string operation;  // position in the scenario: "3 take: count"
  std::string expected;
  std::string got;
};

// Report collects the differences of one scenario.
class Report {
 public:
  // Sets the operation to which the following answers belong.
  void Begin(size_t index, absl::string_view operation) {
    operation_ = absl::StrCat(index, " ", operation, ": ");
  }

  // Compares and returns true if they are equal.
  bool Expect(absl::string_view what, const std::string& expected,
              const std::string& got) {
    if (expected == got) return true;
    Add(what, expected, got);
    return false;
  }
  bool Expect(absl::string_view what, int64_t expected, int64_t got) {
    return Expect(what, absl::StrCat(expected), absl::StrCat(got));
  }
  bool Expect(absl::string_view what, const std::vector<int64_t>& expected,
              const std::vector<int64_t>& got);

  // Compares tensors whose elements must all be equal.
  bool ExpectSame(absl::string_view what, DType dtype,
                  const std::vector<std::byte>& expected,
                  const std::vector<std::byte>& got, Zeros zeros);

  void Add(absl::string_view what, std::string expected, std::string got) {
    differences_.push_back(
        {absl::StrCat(operation_, what), std::move(expected), std::move(got)});
  }

  // Counts an operation that is not replayed, under the reason.
  void LeaveOut(const std::string& reason) { ++left_out_[reason]; }

  const std::vector<Difference>& differences() const { return differences_; }
  const std::map<std::string, int>& left_out() const { return left_out_; }

 private:
  std::string operation_;
  std::map<std::string, int> left_out_;
  std::vector<Difference> differences_;
};

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_REPORT_H_
