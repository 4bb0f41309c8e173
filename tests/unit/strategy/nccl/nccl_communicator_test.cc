#include "strategy/nccl/nccl_communicator.h"

#include <cstring>

#include "tests/unit/strategy/nccl/nccl_harness.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class NcclCommunicatorTest : public NcclFixture {
 protected:
  using Communicator = absl::StatusOr<std::unique_ptr<NcclCommunicator>>;

  NcclCommunicatorTest() { nccl_.get_unique_id(&id_); }

  NcclCommunicator::Options Of(int rank) const {
    NcclCommunicator::Options options;
    options.rank = rank;
    options.device = rank;
    options.members = 2;
    options.round_bytes = 48;
    options.start_timeout = options.timeout = absl::Seconds(60);
    options.grace = absl::ZeroDuration();
    options.ended = [] { return absl::OkStatus(); };
    return options;
  }
  Communicator Make(const NcclCommunicator::Options& options) const {
    return NcclCommunicator::Make(cuda_, nccl_, id_, options);
  }

  const CudaFunctions cuda_ = *LoadCuda(Simulated().cuda);
  const NcclFunctions nccl_ = *LoadNccl(Simulated().nccl);
  NcclUniqueId id_ = {};
};

TEST_F(NcclCommunicatorTest, BytesOfScatteredMemoryCome) {
  const std::vector<std::string> texts = {
      "the bytes of rank 0, which are cut into rounds of 48 bytes each",
      "rank 1 has fewer"};
  ForEach(2, [&](size_t r) {
    const auto made = Make(Of(static_cast<int>(r)));
    ASSERT_OK(made);
    const std::string& mine = texts[r];
    std::vector<std::byte> theirs(texts[1 - r].size());
    NcclCommunicator::Transfer transfer;
    transfer.bytes = {texts[0].size(), texts[1].size()};
    const auto* data = reinterpret_cast<const std::byte*>(mine.data());
    transfer.mine = {{data, 5}, {data + 5, mine.size() - 5}};
    transfer.others.resize(2);
    transfer.others[1 - r] = {{theirs.data(), 7},
                              {theirs.data() + 7, theirs.size() - 7}};
    ASSERT_OK((*made)->Gather(transfer));
    EXPECT_EQ(std::memcmp(theirs.data(), texts[1 - r].data(), theirs.size()),
              0);
  });
}

TEST_F(NcclCommunicatorTest, AMemberThatDoesNotComeIsLate) {
  NcclCommunicator::Options options = Of(0);
  options.start_timeout = absl::Milliseconds(50);
  EXPECT_THAT(Make(options),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("ncclCommInitRankConfig on GPU 0"),
                             HasSubstr("within 50ms"))));
}

TEST_F(NcclCommunicatorTest, AMemberThatHasLeftIsNotAwaited) {
  NcclCommunicator::Options options = Of(0);
  options.ended = [] { return absl::AbortedError("rank 1 has left"); };
  EXPECT_THAT(Make(options), StatusIs(absl::StatusCode::kAborted,
                                      HasSubstr("rank 1 has left")));
}

// The other may have left after its part of the work, which is still to come.
TEST_F(NcclCommunicatorTest, NcclHasTimeToEndAfterAMemberHasLeft) {
  std::atomic<bool> asked = false;
  ForEach(2, [&](size_t r) {
    NcclCommunicator::Options options = Of(static_cast<int>(r));
    options.grace = absl::Seconds(60);
    options.ended = [&] {
      asked = true;
      return absl::AbortedError("a member has left");
    };
    while (r == 1 && !asked) std::this_thread::yield();
    EXPECT_OK(Make(options));
  });
}

TEST_F(NcclCommunicatorTest, TwoMembersOnOneGpuAreFoundByNccl) {
  ForEach(2, [&](size_t r) {
    NcclCommunicator::Options options = Of(static_cast<int>(r));
    options.device = 2;
    EXPECT_THAT(Make(options), StatusIs(absl::StatusCode::kInternal,
                                        HasSubstr("invalid usage")));
  });
}

TEST_F(NcclCommunicatorTest, NothingCanBeGatheredAfterAnError) {
  ForEach(2, [&](size_t r) {
    const auto made = Make(Of(static_cast<int>(r)));
    ASSERT_OK(made);
    if (r == 1) return;
    cuda_on_cpu::SetFault({"cudaMalloc", 1, cudaErrorMemoryAllocation});
    const std::vector<std::byte> mine(32);
    NcclCommunicator::Transfer transfer;
    transfer.bytes = {32, 0};
    transfer.mine = {mine};
    transfer.others.resize(2);
    EXPECT_THAT((*made)->Gather(transfer),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("GPU 0: cudaMalloc of 32 bytes")));
    EXPECT_THAT((*made)->Gather(transfer),
                StatusIs(absl::StatusCode::kAborted));
  });
}

}  // namespace
}  // namespace lockstep::strategy
