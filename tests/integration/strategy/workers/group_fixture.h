#ifndef LOCKSTEP_TESTS_INTEGRATION_STRATEGY_WORKERS_GROUP_FIXTURE_H_
#define LOCKSTEP_TESTS_INTEGRATION_STRATEGY_WORKERS_GROUP_FIXTURE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "deploy/cli/run/port_reservation.h"
#include "gtest/gtest.h"
#include "strategy/workers/group_service.h"
#include "strategy/workers/network_group.h"

namespace lockstep::strategy {

// Member 1 of a group, of which only the answers to greetings are there.
class Answerer final : public GroupHandler {
 public:
  absl::StatusOr<GreetingAnswer> Hear(const Greeting&, int receiver,
                                      bool leaves) override {
    EXPECT_EQ(receiver, 1);
    EXPECT_FALSE(leaves);
    ++heard;
    if (refuses) return absl::InvalidArgumentError("another purpose");
    return GreetingAnswer{21, joins};
  }
  absl::Status Admit(const v1::ParcelHeader&) override {
    return absl::OkStatus();
  }
  absl::Status Read(const v1::ParcelHeader&, ParcelReader&) override {
    return absl::NotFoundError("reads no memory");
  }
  absl::Status Arrive(const v1::ParcelHeader&, std::vector<Leaf>) override {
    return absl::OkStatus();
  }

  std::atomic<int> heard = 0;
  std::atomic<bool> refuses = false;
  std::atomic<bool> joins = true;
};

// Reserved addresses on loopback, and members in threads.
class GroupFixture : public ::testing::Test {
 protected:
  using Group = absl::StatusOr<std::unique_ptr<NetworkGroup>>;

  void Reserve(int members) {
    for (int r = 0; r < members; ++r) {
      ports_.push_back(*cli::PortReservation::Create());
      addresses_.push_back(absl::StrCat("127.0.0.1:", ports_.back().port()));
    }
  }

  NetworkGroup::Options Of(int rank) const {
    return {rank, addresses_, "one replica", absl::Seconds(60),
            absl::Seconds(60)};
  }

  // All members of the options, which join at the same time.
  static std::vector<Group> Join(
      const std::vector<NetworkGroup::Options>& options) {
    std::vector<Group> groups(options.size());
    ForEach(options.size(),
            [&](size_t i) { groups[i] = NetworkGroup::Join(options[i]); });
    return groups;
  }
  std::vector<Group> JoinAll() const {
    std::vector<NetworkGroup::Options> options;
    for (size_t r = 0; r < addresses_.size(); ++r) {
      options.push_back(Of(static_cast<int>(r)));
    }
    return Join(options);
  }

  // Calls work(0), ..., work(number - 1), each in a thread of its own.
  static void ForEach(size_t number, const std::function<void(size_t)>& work) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < number; ++i) threads.emplace_back(work, i);
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<cli::PortReservation> ports_;
  std::vector<std::string> addresses_;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_TESTS_INTEGRATION_STRATEGY_WORKERS_GROUP_FIXTURE_H_
