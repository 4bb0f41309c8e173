#include "server/state/state_tensors.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/state/variable_store_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;

// A table of three rows of two floats, and a vector of four floats; momentum.
class StateTensorsTest : public VariableStoreFixture {
 protected:
  static constexpr size_t kTable = 0;
  static constexpr size_t kVector = 1;

  std::unique_ptr<StateTensors> Make(int num_buffers) {
    std::vector<VariableSpec> variables = {{"t", {3, 2}, DType::kFloat32, {}},
                                           {"v", {4}, DType::kFloat32, {}}};
    variables[0].row_cut = RowCut::kDiv;
    std::vector<OptimizerConfig> optimizers(1);
    optimizers[0].kind = OptimizerConfig::Kind::kMomentum;
    std::vector<PartSpec> parts = {{0, 0, 6, DType::kFloat32, 2},
                                   {1, 0, 4, DType::kFloat32}};
    auto layout = StateLayout::Make(parts, {2, 2}, num_buffers);
    EXPECT_OK(layout);
    const StateHeader header = {"job", num_buffers, 1, layout->file_size()};
    auto file = StateFile::Create(temp_dir_.path(), header, StepRecord());
    EXPECT_OK(file);
    return std::make_unique<StateTensors>(variables, optimizers,
                                          std::vector<VariableSettings>(2),
                                          *std::move(layout), *std::move(file));
  }
};

TEST_F(StateTensorsTest, NextStepGoesToTheOtherBuffer) {
  const auto tensors = Make(2);

  EXPECT_EQ(tensors->Committed(kVector, 1).data(),
            tensors->Tensor(kVector, 1, 0).data());
  EXPECT_EQ(tensors->Next(kVector, 1).data(),
            tensors->Tensor(kVector, 1, 1).data());

  StepRecord record = tensors->record();
  record.current_buffer = 1;
  tensors->file().WriteRecord(record);

  EXPECT_EQ(tensors->Committed(kVector, 0).data(),
            tensors->Tensor(kVector, 0, 1).data());
  EXPECT_EQ(tensors->Next(kVector, 0).data(),
            tensors->Tensor(kVector, 0, 0).data());
}

TEST_F(StateTensorsTest, TableStaysInItsBufferWhileRowsAreLogged) {
  const auto tensors = Make(2);
  ASSERT_TRUE(tensors->is_logged(kTable));
  ASSERT_FALSE(tensors->is_logged(kVector));

  StepRecord record = tensors->record();
  record.current_buffer = 1;
  tensors->file().WriteRecord(record);

  EXPECT_EQ(tensors->CommittedBuffer(kTable), 0);
  EXPECT_EQ(tensors->CommittedBuffer(kVector), 1);
}

TEST_F(StateTensorsTest, InPlaceThereIsOneBuffer) {
  const auto tensors = Make(1);

  EXPECT_FALSE(tensors->is_logged(kTable));
  EXPECT_EQ(tensors->NextBuffer(), 0);
  EXPECT_EQ(tensors->Committed(kVector, 0).data(),
            tensors->Next(kVector, 0).data());
}

TEST_F(StateTensorsTest, RangeBeyondATensorIsRefused) {
  const auto tensors = Make(2);
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);

  EXPECT_OK(tensors->CheckRange(kVector, 1, 8, 8));
  EXPECT_THAT(tensors->CheckRange(kVector, 1, 8, 9), invalid);
  EXPECT_THAT(tensors->CheckRange(kVector, 1, 17, 0), invalid);
  // Their sum is 0.
  EXPECT_THAT(tensors->CheckRange(kVector, 1, SIZE_MAX, 1), invalid);
  EXPECT_THAT(tensors->CheckRange(kVector, 1, 8, SIZE_MAX - 7), invalid);
  EXPECT_THAT(tensors->CheckRange(kVector, 2, 0, 0), invalid);
  EXPECT_THAT(tensors->CheckRange(2, 0, 0, 0), invalid);
}

}  // namespace
}  // namespace lockstep::server
