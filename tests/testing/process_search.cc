#include "tests/testing/process_search.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace lockstep::testing {
namespace {

// Empty if the process has ended, or belongs to another user.
std::string Contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::vector<std::string> ProcessesWith(const std::string& text) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos ||
        pid == std::to_string(getpid())) {
      continue;
    }
    std::string arguments = Contents(entry.path() / "cmdline");
    if (arguments.find(text) == std::string::npos &&
        Contents(entry.path() / "environ").find(text) == std::string::npos) {
      continue;
    }
    std::replace(arguments.begin(), arguments.end(), '\0', ' ');
    found.push_back(arguments);
  }
  return found;
}

}  // namespace lockstep::testing
