#include "common/base/one_line_sink.h"

#include <memory>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/logger.h"
#include "spdlog/sinks/ostream_sink.h"

namespace lockstep {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

class OneLineSinkTest : public ::testing::Test {
 protected:
  std::string Log(const std::string& text) {
    spdlog::logger logger(
        "l", std::make_shared<OneLineSink>(
                 std::make_shared<spdlog::sinks::ostream_sink_mt>(out_)));
    logger.set_pattern("%l %v");
    logger.info("{}", text);
    logger.flush();
    return out_.str();
  }

  std::ostringstream out_;
};

TEST_F(OneLineSinkTest, OrdinaryTextStaysAsItIs) {
  EXPECT_EQ(Log("worker 1 left"), "info worker 1 left\n");
}

TEST_F(OneLineSinkTest, NoLineCanBeForged) {
  EXPECT_EQ(Log("bye\nerror ps 0: gone \x1b[1A"),
            "info bye\\nerror ps 0: gone \\x1b[1A\n");
}

TEST_F(OneLineSinkTest, LongTextIsCut) {
  const std::string line = Log(std::string(1 << 20, 'x'));

  EXPECT_EQ(line.size(), 5 + 4096 + 3 + 1);
  EXPECT_THAT(line, StartsWith("info xxx"));
  EXPECT_THAT(line, EndsWith("xxx...\n"));
}

}  // namespace
}  // namespace lockstep
