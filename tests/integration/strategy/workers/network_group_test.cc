#include "strategy/workers/network_group.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/rpc/security/transport/transport_security.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "spdlog/sinks/base_sink.h"
#include "tests/integration/strategy/workers/group_fixture.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kLate = absl::StatusCode::kDeadlineExceeded;

std::vector<Leaf> Numbers(float first) {
  return {Value::Scalar(first),
          Slices{{int64_t{7}},
                 Value::Of<float>(ElementType::kFloat32, {1, 1}, {first}),
                 {}}};
}

// What is logged, which a test may wait for.
class LogText final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  bool Has(const std::string& text) {
    const std::lock_guard lock(mutex_);
    return text_.find(text) != std::string::npos;
  }
  void Await(const std::string& text) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (!Has(text) && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    EXPECT_TRUE(Has(text)) << text;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    text_.append(message.payload.data(), message.payload.size());
  }
  void flush_() override {}

  std::string text_;
};

class NetworkGroupTest : public GroupFixture {};

TEST_F(NetworkGroupTest, AllGetTheParcelsOfAllByRankInEachExchange) {
  Reserve(3);
  const std::vector<Group> groups = JoinAll();
  for (const Group& group : groups) ASSERT_THAT(group, IsOk());
  ForEach(3, [&](size_t r) {
    for (int i = 0; i < 20; ++i) {
      const auto answer =
          (*groups[r])
              ->Exchange(absl::StrCat("call ", i),
                         Numbers(static_cast<float>(10 * r) + i));
      ASSERT_THAT(answer, IsOk());
      for (size_t from = 0; from < 3; ++from) {
        EXPECT_EQ(*(*answer)[from], Numbers(static_cast<float>(10 * from) + i));
      }
    }
  });
}

TEST_F(NetworkGroupTest, AScatterGivesEachMemberItsOwnParcel) {
  Reserve(3);
  const std::vector<Group> groups = JoinAll();
  ForEach(3, [&](size_t r) {
    ASSERT_THAT(groups[r], IsOk());
    std::vector<std::vector<Leaf>> mine;
    for (size_t to = 0; to < 3; ++to) {
      mine.push_back(Numbers(static_cast<float>(10 * r + to)));
    }
    mine[1].clear();
    EXPECT_TRUE((*groups[r])->scatters_apart());
    const auto answer = (*groups[r])->Scatter("scatter", mine);
    ASSERT_THAT(answer, IsOk());
    for (size_t from = 0; from < 3; ++from) {
      const auto number = static_cast<float>(10 * from + r);
      EXPECT_EQ(*(*answer)[from],
                r == 1 ? std::vector<Leaf>{} : Numbers(number));
    }
    mine.resize(2);
    EXPECT_THAT((*groups[r])->Scatter("scatter", mine).status(),
                StatusIs(kInvalid, HasSubstr("parcels for 2 members")));
    EXPECT_THAT(Barrier(**groups[r]), IsOk());
  });
}

// Values of 1 to `limit` MB, other ones in each exchange.
Value LargeValue(int exchange, size_t rank, int limit) {
  const int64_t size = 250'001 * (1 + (7 * exchange + 3) % limit);
  std::vector<float> elements(static_cast<size_t>(size));
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = static_cast<float>((i + rank) % 1000) + 1000.0f * exchange;
  }
  return Value::Of<float>(ElementType::kFloat32, {size}, elements);
}

// In pieces, and in shared memory that is written again in each exchange.
TEST_F(NetworkGroupTest, LargeValuesComeWhole) {
  for (const bool shared : {false, true}) {
    addresses_.clear();
    Reserve(3);
    std::vector<NetworkGroup::Options> options = {Of(0), Of(1), Of(2)};
    for (auto& each : options) each.shared_memory = shared;
    const std::vector<Group> groups = Join(options);
    ForEach(3, [&](size_t r) {
      ASSERT_THAT(groups[r], IsOk());
      for (int i = 0; i < 6; ++i) {
        const auto all =
            (*groups[r])->Exchange("large", {LargeValue(i, r, 12)});
        ASSERT_THAT(all, IsOk());
        std::vector<std::vector<Leaf>> apart;
        for (size_t to = 0; to < 3; ++to) {
          apart.push_back({LargeValue(i, 10 * r + to, 5), Value::Scalar(1)});
        }
        const auto own = (*groups[r])->Scatter("apart", apart);
        ASSERT_THAT(own, IsOk());
        for (size_t from = 0; from < 3; ++from) {
          EXPECT_EQ(std::get<Value>((*all)[from]->at(0)),
                    LargeValue(i, from, 12));
          EXPECT_EQ(std::get<Value>((*own)[from]->at(0)),
                    LargeValue(i, 10 * from + r, 5));
        }
      }
      EXPECT_EQ((*groups[r])->mapped_members().size(), shared ? 2u : 0u);
    });
  }
}

TEST_F(NetworkGroupTest, DifferentCallsAreRefusedAtAllWithBothDescriptions) {
  Reserve(2);
  const std::vector<Group> groups = JoinAll();
  ForEach(2, [&](size_t r) {
    ASSERT_THAT(groups[r], IsOk());
    NetworkGroup& group = **groups[r];
    EXPECT_THAT(group.Exchange(r == 0 ? "reduce" : "gather", {}).status(),
                StatusIs(kInvalid, AllOf(HasSubstr("reduce at rank 0"),
                                         HasSubstr("gather at rank 1"))));
    EXPECT_THAT(Barrier(group), IsOk()) << "the group goes on";
  });
}

TEST_F(NetworkGroupTest, LeavesThatDoNotFitTheirShapeAreRefusedAtAll) {
  Reserve(2);
  const std::vector<Group> groups = JoinAll();
  const Value two = Value::Of<float>(ElementType::kFloat32, {4}, {1, 2});
  ForEach(2, [&](size_t r) {
    ASSERT_THAT(groups[r], IsOk());
    NetworkGroup& group = **groups[r];
    const Leaf mine = r == 0 ? Leaf(Value::Scalar(1)) : Leaf(two);
    const auto refused =
        StatusIs(kInvalid, HasSubstr("a value of shape [4] has 2 elements"));
    EXPECT_THAT(group.Exchange("gather", {mine}).status(), refused);
    EXPECT_THAT(group.Scatter("scatter", {{mine}, {mine}}).status(), refused);
    EXPECT_THAT(group.Exchange("all", {two}).status(), refused);
    EXPECT_THAT(Barrier(group), IsOk()) << "the group goes on";
  });
}

TEST_F(NetworkGroupTest, AMemberThatLeavesEndsTheGroupForTheOthers) {
  Reserve(2);
  std::vector<Group> groups = JoinAll();
  ASSERT_THAT(groups[0], IsOk());
  std::thread other([&] {
    EXPECT_THAT(Barrier(**groups[1]), IsOk());
    groups[1]->reset();
  });
  EXPECT_THAT(Barrier(**groups[0]), IsOk());
  const absl::Status end = Barrier(**groups[0]);
  other.join();
  EXPECT_THAT(end, StatusIs(kAborted, HasSubstr("rank 1 has left")));
  EXPECT_THAT(Barrier(**groups[0]),
              StatusIs(kAborted, HasSubstr("rank 1 has left")));
}

TEST_F(NetworkGroupTest, AMemberThatIsMissingIsNamedAfterTheTimeout) {
  Reserve(2);
  std::vector<NetworkGroup::Options> options = {Of(0), Of(1)};
  options[0].timeout = absl::Milliseconds(300);
  std::vector<Group> groups = Join(options);
  ASSERT_THAT(groups[0], IsOk());
  EXPECT_THAT(
      (*groups[0])->Exchange("sum", {}).status(),
      StatusIs(kLate, AllOf(HasSubstr("sum: rank 1"), HasSubstr("300ms"))));
  EXPECT_THAT(Barrier(**groups[0]), StatusIs(kLate, HasSubstr("sum: rank 1")));
  EXPECT_THAT(groups[0]->get()->Ended(), StatusIs(kLate));
  // The late one hears of it, and does not wait for its own timeout.
  for (int call = 0; call < 2; ++call) {
    EXPECT_THAT(Barrier(**groups[1]), StatusIs(kLate, HasSubstr("ended")));
  }
}

TEST_F(NetworkGroupTest, ACallMayHaveATimeoutOfItsOwn) {
  Reserve(2);
  std::vector<Group> groups = Join({Of(0), Of(1)});
  ASSERT_THAT(groups[0], IsOk());
  const ScopedTimeout timeout(groups[0]->get(), absl::Milliseconds(300));

  EXPECT_THAT(
      (*groups[0])->Exchange("sum", {}).status(),
      StatusIs(kLate, AllOf(HasSubstr("sum: rank 1"), HasSubstr("300ms"))));
}

// The log has one line for each `notice`, and so does not grow fast.
TEST_F(NetworkGroupTest, ACallThatWaitsNamesTheMissingMembersInTheLog) {
  const auto log = std::make_shared<LogText>();
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", log));
  Reserve(2);
  const std::string of_other =
      absl::StrCat("waits for rank 1 (", addresses_[1]);
  std::vector<NetworkGroup::Options> options = {Of(0), Of(1)};
  for (NetworkGroup::Options& each : options) {
    each.notice = absl::Milliseconds(100);
  }
  {
    std::vector<Group> groups(2);
    ForEach(2, [&](size_t r) {
      if (r == 1) log->Await(absl::StrCat(of_other, ") in Join for "));
      groups[r] = NetworkGroup::Join(options[r]);
      ASSERT_THAT(groups[r], IsOk());
      if (r == 1) log->Await(absl::StrCat(of_other, ") in sum for "));
      EXPECT_THAT((*groups[r])->Exchange("sum", {}).status(), IsOk());
    });
  }
  spdlog::set_default_logger(before);
}

TEST_F(NetworkGroupTest, JoinSaysThatOnlyTheOtherMemberHasCertificates) {
  Reserve(2);
  const testing::TempDir directory;
  testing::WriteTlsFiles(directory.path(),
                         testing::TestAuthority().Files("worker/1"));
  GrpcServer::Options secured;
  secured.security = TransportSecurity::Load({directory.path(), ""}).value();
  const auto server = GrpcServer::Start(addresses_[1], {}, secured);
  ASSERT_THAT(server, IsOk());
  const auto before = spdlog::default_logger();
  const auto log = std::make_shared<LogText>();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", log));
  NetworkGroup::Options options = Of(0);
  options.notice = absl::Milliseconds(100);
  options.join_timeout = absl::Seconds(3);

  const Group group = NetworkGroup::Join(options);

  spdlog::set_default_logger(before);
  EXPECT_THAT(
      group,
      StatusIs(kLate, AllOf(HasSubstr("rank 1"),
                            HasSubstr("lockstep://fashion/worker/1"),
                            HasSubstr("speaks TLS"), HasSubstr("--tls_dir"))));
  EXPECT_TRUE(log->Has("speaks TLS"));
}

TEST_F(NetworkGroupTest, WithoutATimeoutALateMemberIsWaitedFor) {
  Reserve(2);
  std::vector<NetworkGroup::Options> options = {Of(0), Of(1)};
  for (NetworkGroup::Options& each : options) {
    each.timeout = absl::InfiniteDuration();
    each.join_timeout = absl::InfiniteDuration();
  }
  const std::vector<Group> groups = Join(options);
  for (const Group& group : groups) ASSERT_THAT(group, IsOk());
  ForEach(2, [&](size_t r) {
    if (r == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_THAT(Barrier(**groups[r]), IsOk());
  });
}

TEST_F(NetworkGroupTest, AMemberThatNeverStartsIsNamedWithItsAddress) {
  Reserve(2);
  NetworkGroup::Options options = Of(0);
  options.join_timeout = absl::Milliseconds(300);
  EXPECT_THAT(
      NetworkGroup::Join(options).status(),
      StatusIs(kLate, AllOf(HasSubstr("rank 1"), HasSubstr(addresses_[1]))));
}

TEST_F(NetworkGroupTest, MembersForDifferentPurposesAreRefusedOnBothSides) {
  Reserve(2);
  std::vector<NetworkGroup::Options> options = {Of(0), Of(1)};
  options[1].purpose = "two replicas";
  for (const Group& group : Join(options)) {
    EXPECT_THAT(group.status(),
                StatusIs(kInvalid, AllOf(HasSubstr("one replica"),
                                         HasSubstr("two replicas"))));
  }
}

// Such as a server of a job, whose TF_CONFIG has the same address.
TEST_F(NetworkGroupTest, AnotherProgramAtAMembersAddressIsToldAtOnce) {
  Reserve(2);
  const auto other = GrpcServer::Start(addresses_[1], {});
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT(
      NetworkGroup::Join(Of(0)).status(),
      StatusIs(absl::StatusCode::kUnimplemented,
               AllOf(HasSubstr(addresses_[1]), HasSubstr("another program"))));
}

TEST_F(NetworkGroupTest, AClusterInAnotherOrderIsRefused) {
  Reserve(3);
  std::vector<NetworkGroup::Options> options = {Of(0), Of(1), Of(2)};
  std::swap(options[0].addresses[1], options[0].addresses[2]);
  // The others reach rank 0, and so they may wait for it.
  for (NetworkGroup::Options& each : options) {
    each.timeout = absl::Seconds(2);
    each.join_timeout = absl::Seconds(5);
  }
  // It is refused, however late on a busy machine.
  options[0].join_timeout = absl::Minutes(1);
  const std::vector<Group> groups = Join(options);
  EXPECT_THAT(groups[0].status(),
              StatusIs(kInvalid, HasSubstr("same cluster")));
  for (const Group& group : groups) {
    EXPECT_FALSE(group.ok() && Barrier(**group).ok());
  }
}

// A member that has died is started again; the other one begins again when it
// hears of it. Numbers of exchanges begin anew.
TEST_F(NetworkGroupTest, AGroupIsMadeAnewAfterAMemberHasBegunAgain) {
  Reserve(2);
  std::atomic<int> rounds{0};
  ForEach(2, [&](size_t r) {
    for (int start = 0; start < 3; ++start) {
      Group group = NetworkGroup::Join(Of(static_cast<int>(r)));
      ASSERT_THAT(group, IsOk());
      for (int i = 0; i <= start; ++i) ASSERT_THAT(Barrier(**group), IsOk());
      ++rounds;
      if (r == 0 && start < 2) continue;  // begins again
      if (start < 2) {
        EXPECT_THAT(Barrier(**group), StatusIs(kAborted, HasSubstr("rank 0")));
      }
    }
  });
  EXPECT_EQ(rounds, 6);
}

// A member that is killed says no farewell.
TEST_F(NetworkGroupTest, AMemberThatAnswersNoProbeEndsTheGroup) {
  constexpr auto kGone = absl::StatusCode::kUnavailable;
  Reserve(2);
  Answerer member;
  GroupService service(member);
  auto server = GrpcServer::Start(addresses_[1], {&service});
  ASSERT_THAT(server, IsOk());
  NetworkGroup::Options options = Of(0);
  options.probe_every = absl::Milliseconds(20);
  options.probe_timeout = absl::Milliseconds(100);
  const Group group = NetworkGroup::Join(options);
  ASSERT_THAT(group, IsOk());

  (*server)->Shutdown(absl::ZeroDuration());
  server->reset();

  EXPECT_THAT((*group)->Exchange("sum", {}).status(),
              StatusIs(kGone, AllOf(HasSubstr("rank 1 (127.0.0.1:"),
                                    HasSubstr("has not answered 3 probes"))));
  EXPECT_THAT(Barrier(**group), StatusIs(kGone, HasSubstr("rank 1")));
}

// Another program, whose rank 0 has another address, has the same rank 1.
TEST_F(NetworkGroupTest, AMemberThatIsInAnotherGroupEndsThisOne) {
  Reserve(2);
  Answerer member;
  GroupService service(member);
  const auto server = GrpcServer::Start(addresses_[1], {&service});
  ASSERT_THAT(server, IsOk());
  NetworkGroup::Options options = Of(0);
  options.probe_every = absl::Milliseconds(20);
  const Group group = NetworkGroup::Join(options);
  ASSERT_THAT(group, IsOk());

  member.joins = false;

  EXPECT_THAT((*group)->Exchange("sum", {}).status(),
              StatusIs(absl::StatusCode::kAborted,
                       AllOf(HasSubstr("rank 1 (127.0.0.1:"),
                             HasSubstr("another group"))));
  (*server)->Shutdown(absl::ZeroDuration());  // `member` expects no farewell
}

TEST_F(NetworkGroupTest, AMemberThatIsStartedTwiceLeavesTheGroupAsItIs) {
  Reserve(2);
  const std::vector<Group> groups = JoinAll();
  for (const Group& group : groups) ASSERT_THAT(group, IsOk());
  for (int start = 0; start < 10; ++start) {
    EXPECT_THAT(NetworkGroup::Join(Of(1)).status(),
                StatusIs(absl::StatusCode::kUnavailable));
  }
  ForEach(2, [&](size_t r) { EXPECT_THAT(Barrier(**groups[r]), IsOk()); });
}

TEST_F(NetworkGroupTest, AGroupOfOneNeedsNoAddress) {
  Group group = NetworkGroup::Join({0, {"nowhere"}, "alone"});
  ASSERT_THAT(group, IsOk());
  const auto answer = (*group)->Exchange("x", Numbers(1));
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(*answer->at(0), Numbers(1));
}

TEST_F(NetworkGroupTest, OptionsThatCannotBeAreRefused) {
  EXPECT_THAT(NetworkGroup::Join({2, {"a", "b"}, ""}).status(),
              StatusIs(kInvalid, HasSubstr("rank is 2")));
  EXPECT_THAT(NetworkGroup::Join({0, {"a"}, "", absl::ZeroDuration()}).status(),
              StatusIs(kInvalid, HasSubstr("timeouts")));
}

}  // namespace
}  // namespace lockstep::strategy
