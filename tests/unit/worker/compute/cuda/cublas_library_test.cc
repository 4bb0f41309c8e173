#include "worker/compute/cuda/cublas_library.h"

#include <cublas_v2.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker::cuda {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StrEq;

// The machine that builds the test has the toolkit; one that runs it may not.
class CublasLibraryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (absl::Status status = LoadCublas(); !status.ok()) {
      GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: " << status;
    }
  }
};

TEST_F(CublasLibraryTest, FunctionsAreThoseOfTheLibrary) {
  EXPECT_THAT(cublasGetStatusName(CUBLAS_STATUS_ALLOC_FAILED),
              StrEq("CUBLAS_STATUS_ALLOC_FAILED"));
  EXPECT_EQ(cublasSetStream(nullptr, nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cublasDestroy(nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
}

TEST(OpenFirstTest, LibraryThatIsMissingIsNamedWithTheFix) {
  const std::vector<std::string> names = {"libnone-such.so.1",
                                          "/none/such/libnone-such.so.1"};

  EXPECT_THAT(OpenFirst(names),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("libnone-such.so.1: cannot open"),
                             HasSubstr("/none/such/libnone-such.so.1"),
                             HasSubstr("or use cpu"))));
}

TEST(OpenFirstTest, FirstThatIsThereIsTaken) {
  const std::vector<std::string> names = {"libnone-such.so.1", "libc.so.6"};

  EXPECT_OK(OpenFirst(names));
}

}  // namespace
}  // namespace lockstep::worker::cuda
