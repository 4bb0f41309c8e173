#ifndef LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_CONFIG_COMMAND_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_CONFIG_COMMAND_FIXTURE_H_

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "deploy/cli/text/terminal.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::testing {

// CommandTest runs one sub-command and captures its output.
class CommandTest : public ::testing::Test {
 protected:
  CommandTest() { EXPECT_EQ(pipe2(pipe_, O_NONBLOCK), 0); }
  ~CommandTest() override {
    close(pipe_[0]);
    close(pipe_[1]);
  }

  template <typename Command>
  int Run(const std::string& name, std::vector<std::string> args) {
    CLI::App app;
    const Command command(app);
    args.insert(args.begin(), name);
    std::reverse(args.begin(), args.end());  // CLI11's order
    app.parse(args);
    EXPECT_TRUE(command.chosen());
    cli::Terminal terminal(pipe_[1], nullptr, nullptr);
    return command.Run(terminal, err_);
  }

  // Returns the output since the last call.
  std::string Out() const {
    char buffer[8192];
    const ssize_t got = read(pipe_[0], buffer, sizeof(buffer));
    return got > 0 ? std::string(buffer, got) : "";
  }
  std::string Err() const { return err_.str(); }

  // Writes a new file and returns its path.
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }
  std::string Path(const std::string& name) const {
    return name.empty() ? directory_.path() : directory_.Join(name);
  }

 private:
  TempDir directory_;
  int pipe_[2] = {-1, -1};
  std::ostringstream err_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_CONFIG_COMMAND_FIXTURE_H_
