#include "strategy/nccl/nccl_group.h"

#include "tests/unit/strategy/nccl/nccl_harness.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;

constexpr ElementType kTypes[] = {ElementType::kFloat16, ElementType::kFloat32,
                                  ElementType::kFloat64, ElementType::kBFloat16,
                                  ElementType::kInt32,   ElementType::kInt64,
                                  ElementType::kBool,    ElementType::kUint16};

class NcclGroupTest : public NcclFixture {
 protected:
  // Small and large leaves, slices and leaves without elements, in which the
  // members have `rows` rows of the first.
  static Leaves Mixed(ElementType type, int64_t rows, size_t seed) {
    return {Numbers(type, {rows, 37}, seed),
            Numbers(type, {3}, seed + 1),
            Slices{{4, 0}, Numbers(type, {2, 50}, seed + 2), {{9, 50}}},
            Numbers(type, {0, 8}, seed + 3),
            Numbers(type, {5, 101}, seed + 4),
            Slices{{}, Numbers(type, {0, 3}, seed + 5), {}},
            Numbers(type, {}, seed + 6)};
  }
};

TEST_F(NcclGroupTest, ParcelsAreThoseOfTheWrappedGroup) {
  for (const size_t members : {2, 3, 4}) {
    const auto group = MakeAlike(members, Small());
    const auto local =
        MakeLocalGroup(static_cast<int>(members), absl::Seconds(60));
    for (const ElementType type : kTypes) {
      ForEach(members, [&](size_t r) {
        ASSERT_TRUE(UsesNccl(group[r]));
        const auto rows = static_cast<int64_t>(3 + r);
        const Leaves mine = Mixed(type, rows, 10 * r);
        const auto parcels = (*group[r])->Exchange("x", mine);
        const auto expected = local[r]->Exchange("x", mine);
        ASSERT_OK(parcels);
        ASSERT_OK(expected);
        ASSERT_EQ(parcels->size(), members);
        for (size_t from = 0; from < members; ++from) {
          EXPECT_EQ(*(*parcels)[from], *(*expected)[from]);
        }
      });
    }
  }
}

TEST_F(NcclGroupTest, ElementsThatAreNotThoseOfTheShapeAreRefusedAtAll) {
  const auto group = MakeAlike(2, Small());
  ForEach(2, [&](size_t r) {
    ASSERT_TRUE(UsesNccl(group[r]));
    const std::vector<float> elements(r == 0 ? 1000 : 999);
    const Value value = Value::Of(ElementType::kFloat32, {1000}, elements);
    EXPECT_THAT(
        (*group[r])->Exchange("sum", {value}).status(),
        StatusIs(kInvalid,
                 HasSubstr("a value of shape [1000] has 999 elements")));
    EXPECT_OK((*group[r])->Exchange("next", {}));
  });
}

// A reduction in slices would move each value by NCCL, and then its slices.
TEST_F(NcclGroupTest, ScattersByAnExchangeAsItSays) {
  const auto group = MakeAlike(3, Small());
  ForEach(3, [&](size_t r) {
    ASSERT_TRUE(UsesNccl(group[r]));
    EXPECT_FALSE((*group[r])->scatters_apart());
  });
}

TEST_F(NcclGroupTest, EqualSizesTravelTogetherAndOthersOneByOne) {
  for (const size_t members : {2, 3, 4}) {
    const auto group = MakeAlike(members, Small());
    for (const int64_t bytes : {64, 68, 1000, 1004, 2500, 10'000}) {
      ExpectExchange(group, [&](size_t r) {
        return Leaves{Numbers(ElementType::kFloat32, {bytes / 4}, r)};
      });
      ExpectExchange(group, [&](size_t r) {
        const auto more = static_cast<int64_t>(r) * 997;
        return Leaves{Numbers(ElementType::kFloat16, {bytes / 2 + more}, r)};
      });
    }
    // Some members have nothing that travels by NCCL.
    ExpectExchange(group, [&](size_t r) {
      if (r == 0) return Leaves{};
      return Leaves{Numbers(ElementType::kInt64, {300}, r)};
    });
    ExpectExchange(group, [&](size_t r) {
      if (r + 1 < members) return Leaves{Value::Scalar(1)};
      return Leaves{Numbers(ElementType::kInt64, {300}, r)};
    });
  }
}

TEST_F(NcclGroupTest, BitsAreRightInEveryOrderOfTheStreams) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    cuda_on_cpu::Settings gpus;
    gpus.devices = 3;
    gpus.seed = seed;
    gpus.coherent = seed % 2 == 0;
    cuda_on_cpu::Configure(gpus);
    nccl_on_cpu::Settings nccl;
    nccl.polls = static_cast<int>(seed % 4);
    nccl_on_cpu::Configure(nccl);
    const auto group = MakeAlike(3, Small());
    for (size_t call = 0; call < 4; ++call) {
      ExpectExchange(group, [&](size_t r) {
        const auto rows = static_cast<int64_t>(2 + (call % 2) * r);
        return Mixed(ElementType::kFloat32, rows, 100 * call + r);
      });
    }
  }
}

TEST_F(NcclGroupTest, LargeLeavesTravelByWayOfTheGpusAndSmallOnesDoNot) {
  NcclGroup::Options options = Small();
  options.small_bytes = NcclGroup::Options().small_bytes;
  options.round_bytes = NcclGroup::Options().round_bytes;
  const auto group = MakeAlike(2, options);
  cuda_on_cpu::TakeCalls();
  ExpectExchange(group, [&](size_t r) {
    return Leaves{Numbers(ElementType::kFloat32, {8191}, r)};
  });
  EXPECT_THAT(cuda_on_cpu::TakeCalls(), Not(Contains("cudaMemcpyAsync")));
  ExpectExchange(group, [&](size_t r) {
    return Leaves{Numbers(ElementType::kFloat32, {8192}, r)};
  });
  EXPECT_THAT(cuda_on_cpu::TakeCalls(), Contains("cudaMemcpyAsync"));
}

TEST_F(NcclGroupTest, DifferentCallsAreRefusedAtAllAndTheGroupGoesOn) {
  const auto group = MakeAlike(3, Small());
  ForEach(3, [&](size_t r) {
    ASSERT_OK(group[r]);
    const Leaves large = {Numbers(ElementType::kFloat32, {500}, r)};
    EXPECT_THAT(
        (*group[r])->Exchange(r == 2 ? "gather" : "sum", large).status(),
        StatusIs(kInvalid, AllOf(HasSubstr("sum at rank 0"),
                                 HasSubstr("gather at rank 2"))));
    EXPECT_THAT((*group[r])->Exchange("sum", large).status(), IsOk());
  });
}

TEST_F(NcclGroupTest, TheDeviceOfTheCallersThreadStays) {
  cuda_on_cpu::Settings gpus;
  gpus.devices = 4;
  gpus.seed = 3;
  cuda_on_cpu::Configure(gpus);
  const auto group = MakeAlike(2, Small());
  ForEach(2, [&](size_t r) {
    ASSERT_EQ(cudaSetDevice(3), cudaSuccess);
    ASSERT_OK(
        (*group[r])->Exchange("x", {Numbers(ElementType::kFloat32, {500}, r)}));
    int device = 0;
    ASSERT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 3);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  });
}

TEST_F(NcclGroupTest, AMemberAloneNeedsNoNccl) {
  NcclGroup::Options options = Small();
  options.libraries.nccl = {"libnone-such.so.2"};
  const auto group = MakeAlike(1, options);
  ASSERT_OK(group[0]);
  EXPECT_FALSE(UsesNccl(group[0]));
}

TEST_F(NcclGroupTest, WithoutTheLibraryAllAreRefusedWithTheReason) {
  std::vector<NcclGroup::Options> options(3, Small());
  options[1].host = "b";
  options[1].libraries.nccl = {"libnone-such.so.2"};
  for (const Made& made : Make(options)) {
    EXPECT_THAT(made, StatusIs(kRefused));
    EXPECT_EQ(made.status().message(),
              "NCCL cannot be used, because of rank 1 (host b): "
              "libnone-such.so.2 cannot be loaded (libnone-such.so.2: cannot "
              "open shared object file: No such file or directory); install "
              "NCCL 2.14 or newer, or add its folder to LD_LIBRARY_PATH; or "
              "use communication DIRECT (WorkersOptions::implementation "
              "kDirect)");
  }
}

TEST_F(NcclGroupTest, WhereItIsNotRequiredAllGoWithout) {
  std::vector<NcclGroup::Options> options(3, Small());
  for (auto& each : options) each.required = false;
  options[1].libraries.cuda = {"libnone-such.so"};
  const auto group = Make(options);
  for (const Made& made : group) EXPECT_FALSE(UsesNccl(made));
  ExpectExchange(group, [&](size_t r) {
    return Leaves{Numbers(ElementType::kFloat32, {500}, r)};
  });
}

TEST_F(NcclGroupTest, WhereAllCanUseItAllDo) {
  NcclGroup::Options options = Small();
  options.required = false;
  for (const Made& made : MakeAlike(4, options)) EXPECT_TRUE(UsesNccl(made));
}

TEST_F(NcclGroupTest, AHostWithoutGpusIsNamed) {
  cuda_on_cpu::Settings none;
  none.devices = 0;
  cuda_on_cpu::Configure(none);
  for (const Made& made : MakeAlike(2, Small())) {
    EXPECT_THAT(
        made, StatusIs(kRefused,
                       AllOf(HasSubstr("rank 0 (host a)"), HasSubstr("no GPU"),
                             HasSubstr("no CUDA-capable device"),
                             HasSubstr("kDirect"))));
  }
}

TEST_F(NcclGroupTest, AnOldNcclIsNamed) {
  nccl_on_cpu::Settings old;
  old.version = 21302;
  nccl_on_cpu::Configure(old);
  for (const Made& made : MakeAlike(2, Small())) {
    EXPECT_THAT(made,
                StatusIs(kRefused, AllOf(HasSubstr("version 21302"),
                                         HasSubstr("install NCCL 2.14"))));
  }
}

TEST_F(NcclGroupTest, TwoMembersOnOneGpuAreRefused) {
  std::vector<NcclGroup::Options> options(3, Small());
  options[1].gpu = 2;  // as the third member, which takes it by its number
  for (const Made& made : Make(options)) {
    EXPECT_THAT(made, StatusIs(kInvalid));
    EXPECT_EQ(
        made.status().message(),
        "rank 1 and rank 2 have the same GPU, 0000:02:00.0 of host a, and "
        "NCCL needs one for each member; set WorkersOptions::gpu to "
        "different GPUs, or use communication DIRECT "
        "(WorkersOptions::implementation kDirect)");
  }
  for (auto& each : options) each.required = false;
  for (const Made& made : Make(options)) {
    EXPECT_THAT(made, IsOk());
    EXPECT_FALSE(UsesNccl(made));
  }
}

TEST_F(NcclGroupTest, MembersThatDisagreeWhetherItIsRequiredAreRefused) {
  std::vector<NcclGroup::Options> options(2, Small());
  options[1].required = false;
  for (const Made& made : Make(options)) {
    EXPECT_THAT(made, StatusIs(kInvalid, AllOf(HasSubstr("required at rank 0"),
                                               HasSubstr("at rank 1"))));
  }
}

}  // namespace
}  // namespace lockstep::strategy
