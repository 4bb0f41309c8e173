#include "common/base/control_group.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lockstep {
namespace {

// Hierarchies of version 1 write "none" as the largest multiple of a page.
constexpr uint64_t kUnlimited = uint64_t{1} << 62;

void ReadLimit(const std::string& path, std::optional<uint64_t>& least) {
  std::ifstream file(path);
  std::string word;
  uint64_t limit = 0;
  // "max" is no number, and no limit.
  if (!(file >> word) || !absl::SimpleAtoi(word, &limit)) return;
  if (limit >= kUnlimited) return;
  least = std::min(limit, least.value_or(limit));
}

// Reads the limits of the group at `path` and of those above it. In a container
// the path may be that of the host, of which only the root can be seen: what
// cannot be read has no limit.
void ReadUpwards(const std::string& hierarchy, absl::string_view path,
                 absl::string_view file, std::optional<uint64_t>& least) {
  if (file.empty()) return;
  std::string group(path);
  while (true) {
    ReadLimit(absl::StrCat(hierarchy, group, "/", file), least);
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) return;
    group.resize(slash);
  }
}

}  // namespace

std::optional<uint64_t> LimitOfGroups(const GroupLimit& limit,
                                      const std::string& groups,
                                      const std::string& mount) {
  std::optional<uint64_t> least;
  std::ifstream file(groups);
  std::string line;
  // ID:CONTROLLER,CONTROLLER:PATH, where version 2 has no controller.
  while (std::getline(file, line)) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (fields[1].empty()) {
      ReadUpwards(mount, fields[2], limit.file, least);
      continue;
    }
    for (absl::string_view controller : absl::StrSplit(fields[1], ',')) {
      if (controller != limit.controller) continue;
      ReadUpwards(absl::StrCat(mount, "/", controller), fields[2],
                  limit.controller_file, least);
    }
  }
  return least;
}

}  // namespace lockstep
