#include "chief/plan/mirror_reducers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace lockstep::chief {
namespace {

int64_t BytesOf(const Plan& plan, const Part& part) {
  const DType dtype = plan.variables[part.variable].dtype;
  return part.count * static_cast<int64_t>(ElementSize(dtype));
}

// Divides `parts`, by index, among `servers`.
void Divide(const std::map<int, Part*>& parts, const Plan& plan,
            const std::vector<int>& servers) {
  const auto count = static_cast<int64_t>(servers.size());
  int64_t total = 0;
  for (const auto& [index, part] : parts) total += BytesOf(plan, *part);
  int64_t before = 0;  // bytes of the parts that have their server
  for (const auto& [index, part] : parts) {
    const int64_t bytes = BytesOf(plan, *part);
    // By the middle of the part: a server's only part then goes to another
    // mirror than 0, which has more to do than the others.
    const int64_t middle = before + bytes / 2;
    const int64_t place =
        std::min(middle / std::max<int64_t>(total / count, 1), count - 1);
    part->server = servers[static_cast<size_t>(place)];
    before += bytes;
  }
}

}  // namespace

Plan PlanAmong(Plan plan, const std::vector<int>& servers) {
  if (!plan.mirrored) return plan;
  std::map<int, std::map<int, Part*>> absent;  // by server, then index
  for (Part& part : plan.parts) {
    if (std::binary_search(servers.begin(), servers.end(), part.server)) {
      continue;
    }
    absent[part.server][part.index] = &part;
  }
  for (const auto& [server, parts] : absent) Divide(parts, plan, servers);
  return plan;
}

}  // namespace lockstep::chief
