#include "common/process/numa_node.h"

#include <pthread.h>
#include <sched.h>

#include <fstream>
#include <future>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

cpu_set_t ProcessorsOf(pthread_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(pthread_getaffinity_np(thread, sizeof(set), &set), 0);
  return set;
}

// Parses the kernel's list: "0-3,8".
cpu_set_t ProcessorsOfNode0() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string list;
  std::getline(std::ifstream("/sys/devices/system/node/node0/cpulist"), list);
  for (const auto range : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    int first = 0;
    int last = 0;
    EXPECT_TRUE(absl::SimpleAtoi(ends.first, &first));
    EXPECT_TRUE(absl::SimpleAtoi(ends.second.empty() ? ends.first : ends.second,
                                 &last));
    for (int processor = first; processor <= last; ++processor) {
      CPU_SET(processor, &set);
    }
  }
  return set;
}

// Another place than the later one, if the node has two processors.
void StayOnProcessor0() {
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  pthread_setaffinity_np(pthread_self(), sizeof(first), &first);
}

class NumaNodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cpu_set_t node = ProcessorsOfNode0();
    CPU_AND(&node, &node, &before_);
    if (CPU_COUNT(&node) == 0) {
      GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: no node 0, or not for us";
    }
  }
  void TearDown() override {
    pthread_setaffinity_np(pthread_self(), sizeof(before_), &before_);
  }

  const cpu_set_t before_ = ProcessorsOf(pthread_self());
};

TEST_F(NumaNodeTest, AllThreadsStayOnTheNodesProcessors) {
  std::promise<void> begun;
  std::promise<void> ends;
  std::thread other([&] {
    StayOnProcessor0();
    begun.set_value();
    ends.get_future().wait();
  });
  begun.get_future().wait();
  StayOnProcessor0();

  const absl::Status placed = StayOnNumaNode(0);

  const cpu_set_t own = ProcessorsOf(pthread_self());
  const cpu_set_t others = ProcessorsOf(other.native_handle());
  ends.set_value();
  other.join();
  if (absl::IsFailedPrecondition(placed)) {
    GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: " << placed;
  }
  ASSERT_THAT(placed, IsOk());
  const cpu_set_t node = ProcessorsOfNode0();
  cpu_set_t of_node = before_;  // the node's processors, or more
  CPU_AND(&of_node, &of_node, &node);
  EXPECT_GE(CPU_COUNT(&own), CPU_COUNT(&of_node));
  CPU_AND(&of_node, &own, &node);
  EXPECT_TRUE(CPU_EQUAL(&own, &of_node));
  EXPECT_TRUE(CPU_EQUAL(&own, &others));
}

TEST_F(NumaNodeTest, ANodeThatIsNotThereIsRefusedWithThoseThatAre) {
  const absl::Status placed = StayOnNumaNode(4095);

  if (absl::IsFailedPrecondition(placed)) {
    GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: " << placed;
  }
  EXPECT_THAT(placed,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--numa_node=4095"), HasSubstr("0"))));
  const cpu_set_t now = ProcessorsOf(pthread_self());
  EXPECT_TRUE(CPU_EQUAL(&now, &before_));
}

TEST_F(NumaNodeTest, WithoutANodeNothingChanges) {
  StayOnProcessor0();
  const cpu_set_t before = ProcessorsOf(pthread_self());

  ASSERT_THAT(StayOnNumaNode(kAnyNumaNode), IsOk());

  const cpu_set_t now = ProcessorsOf(pthread_self());
  EXPECT_TRUE(CPU_EQUAL(&now, &before));
}

}  // namespace
}  // namespace lockstep
