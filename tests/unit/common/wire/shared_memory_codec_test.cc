#include "common/wire/shared_memory_codec.h"

#include <string>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(SharedMemoryCodecTest, FileIsTheSameOnTheOtherSide) {
  const SharedFile sent{4321, 7, uint64_t{1} << 40,
                        std::string("\x00\xff proof", 8), "boot pid:[1]"};

  const SharedFile came = FromProto(ToProto(sent));

  EXPECT_EQ(came.pid, sent.pid);
  EXPECT_EQ(came.fd, sent.fd);
  EXPECT_EQ(came.size, sent.size);
  EXPECT_EQ(came.proof, sent.proof);
  EXPECT_EQ(came.pid_space, sent.pid_space);
}

TEST(SharedMemoryCodecTest, PlaceIsTheSameOnTheOtherSide) {
  const SharedPlace sent{(uint64_t{1} << 40) + 3, 17, uint64_t{1} << 35};

  const SharedPlace came = FromProto(ToProto(sent));

  EXPECT_EQ(came.offset, sent.offset);
  EXPECT_EQ(came.counter, sent.counter);
  EXPECT_EQ(came.writes, sent.writes);
}

}  // namespace
}  // namespace lockstep
