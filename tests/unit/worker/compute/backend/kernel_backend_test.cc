// What KernelBackend adds to a device: checks before it, and errors from it.

#include "worker/compute/backend/kernel_backend.h"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/cpu/serial_device.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A device that notes its calls and fails them.
class LostDevice : public cpu::SerialDevice {
 public:
  explicit LostDevice(std::vector<std::string>& calls) : calls_(&calls) {}

  absl::Status Copy(const char* op, const void*, void*, size_t) {
    return Lost(op);
  }
  template <typename F>
  absl::Status ForEach(const char* op, int64_t, const F&) {
    return Lost(op);
  }
  template <typename F>
  absl::Status Grid(const char* op, int64_t, int64_t, const F&) {
    return Lost(op);
  }
  template <typename F>
  absl::Status Rows(const char* op, int64_t, const F&) {
    return Lost(op);
  }
  template <typename T, typename F>
  absl::Status SumColumns(const char* op, int64_t, int64_t, const F&, T*) {
    return Lost(op);
  }
  template <typename T>
  absl::Status Gemm(const char* op, const StridedGemm&, const T*, const T*,
                    T*) {
    return Lost(op);
  }

 private:
  absl::Status Lost(const char* op) {
    calls_->emplace_back(op);
    return absl::InternalError(absl::StrCat(op, ": the device is lost"));
  }

  std::vector<std::string>* calls_;
};

class LostBackend final : public KernelBackend<LostDevice> {
 public:
  explicit LostBackend(std::vector<std::string>& calls)
      : KernelBackend<LostDevice>(LostDevice(calls)) {}
  const char* name() const override { return "lost"; }
};

class KernelBackendTest : public ::testing::Test {
 protected:
  std::vector<std::string> calls_;
  LostBackend backend_{calls_};
  std::array<float, 6> a_{};
  std::array<float, 6> b_{};
  std::array<float, 4> out_{};
};

TEST_F(KernelBackendTest, ArgumentsAreCheckedBeforeTheDeviceIsCalled) {
  const ConstTensor a(ElementType::kFloat32, {2, 3}, a_.data());
  const ConstTensor wrong(ElementType::kFloat32, {2, 3}, b_.data());
  const Tensor out(ElementType::kFloat32, {2, 2}, out_.data());

  EXPECT_THAT(
      backend_.MatMul(a, wrong, {}, out),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("MatMul")));
  EXPECT_THAT(backend_.Relu(a, out),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Relu")));
  EXPECT_THAT(
      backend_.Upload(a, out),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Upload")));
  EXPECT_THAT(calls_, IsEmpty());
}

TEST_F(KernelBackendTest, ErrorOfTheDeviceIsThatOfTheOperation) {
  const ConstTensor a(ElementType::kFloat32, {2, 3}, a_.data());
  const ConstTensor b(ElementType::kFloat32, {3, 2}, b_.data());
  const Tensor out(ElementType::kFloat32, {2, 2}, out_.data());
  const auto is_lost = [](const char* op) {
    return StatusIs(absl::StatusCode::kInternal,
                    HasSubstr(absl::StrCat(op, ": the device is lost")));
  };

  EXPECT_THAT(backend_.MatMul(a, b, {}, out), is_lost("MatMul"));
  EXPECT_THAT(backend_.Relu(out, out), is_lost("Relu"));
  EXPECT_THAT(backend_.Upload(out, out), is_lost("Upload"));
  EXPECT_THAT(calls_, ElementsAre("MatMul", "Relu", "Upload"));
}

}  // namespace
}  // namespace lockstep::worker
