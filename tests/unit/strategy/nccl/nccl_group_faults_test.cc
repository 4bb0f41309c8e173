// Errors of NCCL and of CUDA, hangs, and members that leave: each ends the
// group at all members, in time.

#include <chrono>

#include "tests/unit/strategy/nccl/nccl_harness.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kInternal = absl::StatusCode::kInternal;
constexpr auto kLate = absl::StatusCode::kDeadlineExceeded;
constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;

class NcclGroupFaultsTest : public NcclFixture {
 protected:
  static Leaves Equal(size_t r) {
    return {Numbers(ElementType::kFloat32, {600}, r)};
  }
  static Leaves Unequal(size_t r) {
    return {Numbers(ElementType::kFloat32,
                    {600 + 300 * static_cast<int64_t>(r)}, r)};
  }
};

TEST_F(NcclGroupFaultsTest, AnErrorOfNcclEndsTheGroupAtAllMembers) {
  struct Case {
    std::string call;
    bool equal;
  };
  for (const Case& each : std::vector<Case>{{"ncclAllGather", true},
                                            {"ncclCommGetAsyncError", true},
                                            {"ncclGroupStart", false},
                                            {"ncclSend", false},
                                            {"ncclRecv", false},
                                            {"ncclGroupEnd", false}}) {
    for (const int64_t number : {1, 2}) {
      SCOPED_TRACE(each.call);
      const auto group = MakeAlike(3, Small());
      nccl_on_cpu::SetFault({each.call, /*rank=*/1, number});
      const auto errors = Fail(group, each.equal ? Equal : Unequal);
      EXPECT_THAT(errors[1], StatusIs(kInternal, AllOf(HasSubstr("sum: "),
                                                       HasSubstr("internal "
                                                                 "error"))));
      for (const int r : {0, 2}) {
        EXPECT_THAT(errors[static_cast<size_t>(r)],
                    StatusIs(kAborted, AllOf(HasSubstr("sum: "),
                                             HasSubstr("rank 1 has left"))));
      }
    }
  }
}

TEST_F(NcclGroupFaultsTest, AnErrorOfCudaEndsTheGroupAtAllMembers) {
  cuda_on_cpu::Settings gpus;
  gpus.devices = 3;
  gpus.seed = 5;
  gpus.coherent = true;  // copies are under way when the error comes
  cuda_on_cpu::Configure(gpus);
  for (const std::string& call :
       {"cudaSetDevice", "cudaMalloc", "cudaMemcpyAsync", "cudaEventRecord",
        "cudaEventQuery", "cudaStreamSynchronize"}) {
    for (const int64_t number : {1, 3}) {
      SCOPED_TRACE(call);
      const auto group = MakeAlike(3, Small());
      cuda_on_cpu::SetFault({call, number, cudaErrorInvalidValue});
      int failed = 0;
      for (const absl::Status& error : Fail(group, Equal)) {
        if (absl::IsInternal(error)) {
          ++failed;
          EXPECT_THAT(error.message(), HasSubstr(call));
          EXPECT_THAT(error.message(), HasSubstr("invalid argument"));
        } else {
          EXPECT_THAT(error, StatusIs(kAborted, HasSubstr("has left")));
        }
      }
      EXPECT_EQ(failed, 1);
      cuda_on_cpu::ClearFault();
    }
  }
}

TEST_F(NcclGroupFaultsTest, AGpuWithoutMemoryIsAnErrorOfItsOwn) {
  cuda_on_cpu::Settings gpus;
  gpus.devices = 2;
  gpus.memory = 1000;
  cuda_on_cpu::Configure(gpus);
  const auto group = MakeAlike(2, Small());
  for (const absl::Status& error : Fail(group, Equal)) {
    EXPECT_THAT(error,
                AnyOf(StatusIs(absl::StatusCode::kResourceExhausted,
                               AllOf(HasSubstr("cudaMalloc of 2016 bytes"),
                                     HasSubstr("out of memory"))),
                      StatusIs(kAborted, HasSubstr("has left"))));
  }
}

TEST_F(NcclGroupFaultsTest, AFailureOfAnotherMemberIsNoErrorOfThisOne) {
  for (const NcclResult result : {kNcclRemoteError, kNcclSystemError}) {
    const auto group = MakeAlike(2, Small());
    nccl_on_cpu::SetFault({"ncclCommGetAsyncError", 0, 2, result});
    for (const absl::Status& error : Fail(group, Equal)) {
      EXPECT_THAT(error, StatusIs(kAborted));
    }
  }
}

TEST_F(NcclGroupFaultsTest, AHangEndsWithTheTimeout) {
  NcclGroup::Options options = Small();
  // Half of it is the time to start, which a busy machine must not exceed.
  options.timeout = absl::Seconds(20);
  const auto group = MakeAlike(3, options);
  for (const Made& member : group) ASSERT_OK(member);
  nccl_on_cpu::SetHang(1);
  int late = 0;
  const auto errors = Fail(group, Equal);
  for (size_t r = 0; r < errors.size(); ++r) {
    const absl::Status& error = errors[r];
    EXPECT_EQ((*group[r])->Exchange("next", {}).status(), error);
    late += absl::IsDeadlineExceeded(error) ? 1 : 0;
    EXPECT_THAT(error, AnyOf(StatusIs(kLate, AllOf(HasSubstr("sum: nccl"),
                                                   HasSubstr("within 20s"))),
                             StatusIs(kAborted, HasSubstr("has left"))));
  }
  EXPECT_GE(late, 1);
  EXPECT_EQ(nccl_on_cpu::Aborted(), 3);
}

TEST_F(NcclGroupFaultsTest, AHangEndsWithTheTimeoutOfTheCall) {
  for (const bool equal : {true, false}) {
    nccl_on_cpu::Configure({});
    const auto group = MakeAlike(2, Small());
    for (const Made& member : group) {
      ASSERT_OK(member);
      (*member)->SetTimeout(absl::Milliseconds(500));
    }
    nccl_on_cpu::SetHang(1);

    int late = 0;
    for (const absl::Status& error : Fail(group, equal ? Equal : Unequal)) {
      late += absl::IsDeadlineExceeded(error) ? 1 : 0;
      EXPECT_THAT(error, AnyOf(StatusIs(kLate, HasSubstr("within 500ms")),
                               StatusIs(kAborted, HasSubstr("has left"))));
    }
    EXPECT_GE(late, 1);
  }
}

TEST_F(NcclGroupFaultsTest, AMemberThatLeavesBeforeItsCallEndsTheGroup) {
  auto group = MakeAlike(2, Small());
  ASSERT_OK(group[1]);
  group[1]->reset();
  {
    // Its end comes after that of the group.
    const ScopedTimeout timeout(group[0]->get(), absl::Seconds(30));
    EXPECT_THAT((*group[0])->Exchange("sum", Equal(0)).status(),
                StatusIs(kAborted, HasSubstr("rank 1 has left")));
  }
  EXPECT_THAT((*group[0])->Exchange("next", {}).status(), StatusIs(kAborted));
}

// One that has all bytes may leave while the others still wait for theirs.
TEST_F(NcclGroupFaultsTest, AMemberMayLeaveAsSoonAsItHasItsParcels) {
  NcclGroup::Options options = Small();
  options.grace = absl::Seconds(30);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    cuda_on_cpu::Settings gpus;
    gpus.devices = 3;
    gpus.seed = seed;
    cuda_on_cpu::Configure(gpus);
    auto group = MakeAlike(3, options);
    ForEach(3, [&](size_t r) {
      ASSERT_OK(group[r]);
      EXPECT_OK((*group[r])->Exchange("sum", Unequal(r)));
      group[r]->reset();
    });
  }
}

TEST_F(NcclGroupFaultsTest, AnErrorAtTheStartIsRefusedAtAllOrGoneWithout) {
  for (const std::string& call :
       {"ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommGetAsyncError"}) {
    const int rank = call == "ncclGetUniqueId" ? 0 : 1;
    NcclGroup::Options options = Small();
    options.timeout = absl::Milliseconds(600);
    nccl_on_cpu::SetFault({call, rank});
    for (const Made& made : MakeAlike(2, options)) {
      EXPECT_THAT(made, StatusIs(kRefused, HasSubstr("internal error")));
    }
    options.required = false;
    nccl_on_cpu::SetFault({call, rank});
    const auto group = MakeAlike(2, options);
    for (const Made& made : group) EXPECT_FALSE(UsesNccl(made));
    ExpectExchange(group, Equal);
  }
}

// The timeouts of the two are equal, as in JoinWorkers().
TEST_F(NcclGroupFaultsTest, AMemberThatWaitsInVainComesBeforeTheOthersGiveUp) {
  NcclGroup::Options options = Small();
  options.timeout = absl::Seconds(20);
  nccl_on_cpu::SetFault({"ncclCommInitRankConfig", /*rank=*/1});
  const std::vector<NcclGroup::Options> both(2, options);
  for (const Made& made : Make(both, options.timeout)) {
    EXPECT_THAT(made, StatusIs(kRefused, HasSubstr("rank 1 cannot start it")));
  }
}

TEST_F(NcclGroupFaultsTest, AnEndThatHangsIsAborted) {
  NcclGroup::Options options = Small();
  options.grace = absl::Seconds(2);  // in which rank 1 must end
  auto group = MakeAlike(2, options);
  nccl_on_cpu::SetFault({"ncclCommFinalize", /*rank=*/0});
  for (Made& made : group) {
    ASSERT_OK(made);
    made->reset();
  }
  EXPECT_EQ(nccl_on_cpu::Aborted(), 1);
}

}  // namespace
}  // namespace lockstep::strategy
