#include "tests/benchmark/resource_usage.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace lockstep::benchmark {
namespace {

// Empty if it cannot be read, e.g. because its process has ended.
std::string ReadFile(const std::filesystem::path& path) {
  std::ostringstream text;
  // Unlike an iterator, throws no exceptions.
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The needed fields of /proc/PID/stat.
struct ProcessStat {
  int parent = 0;
  double cpu_seconds = 0;
};

ProcessStat ParseStat(const std::string& text) {
  // The name may contain any character.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 1));
  ProcessStat stat;
  std::string skipped;
  rest >> skipped >> stat.parent;
  for (int field = 5; field < 14; ++field) rest >> skipped;
  int64_t user = 0;
  int64_t system = 0;
  rest >> user >> system;
  stat.cpu_seconds = static_cast<double>(user + system) /
                     static_cast<double>(sysconf(_SC_CLK_TCK));
  return stat;
}

// Recognises a server by its program's name or by its role.
bool IsServer(const std::string& command_line) {
  const std::vector<std::string> words = absl::StrSplit(command_line, '\0');
  if (std::filesystem::path(words[0]).filename() == "ps_server") return true;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i - 1] == "--role") return absl::EndsWith(words[i], "_server");
  }
  return false;
}

}  // namespace

ProcessMemory ParseMemory(const std::string& status) {
  std::istringstream lines(status);
  ProcessMemory memory;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    int64_t kilobytes = 0;
    if (!(words >> key >> kilobytes)) continue;
    if (key == "RssAnon:") memory.anonymous = kilobytes << 10;
    if (key == "RssFile:") memory.file = kilobytes << 10;
    if (key == "RssShmem:") memory.shared = kilobytes << 10;
    if (key == "VmHWM:") memory.peak = kilobytes << 10;
  }
  return memory;
}

int64_t ParseSentBytes(const std::string& devices) {
  std::istringstream lines(devices);
  for (std::string line; std::getline(lines, line);) {
    absl::string_view fields = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&fields, "lo:")) continue;
    // Eight fields of received data come before the sent bytes.
    std::istringstream words{std::string(fields)};
    int64_t bytes = 0;
    for (int field = 0; field < 9; ++field) words >> bytes;
    return words ? bytes : 0;
  }
  return 0;
}

ResourceUsage UsageOfSiblings() {
  ResourceUsage usage;
  usage.sent_bytes = ParseSentBytes(ReadFile("/proc/self/net/dev"));
  const pid_t parent = getppid();
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc", ignored)) {
    // Besides numbers there are "self" and "thread-self".
    if (!absl::ascii_isdigit(entry.path().filename().native()[0])) continue;
    const ProcessStat stat = ParseStat(ReadFile(entry.path() / "stat"));
    if (stat.parent != parent) continue;
    usage.cpu_seconds += stat.cpu_seconds;
    if (!IsServer(ReadFile(entry.path() / "cmdline"))) continue;
    const ProcessMemory memory = ParseMemory(ReadFile(entry.path() / "status"));
    if (memory.peak > usage.server.peak) usage.server = memory;
  }
  return usage;
}

}  // namespace lockstep::benchmark
