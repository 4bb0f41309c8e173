#include "common/process/new_thread.h"

#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/process/process_limits.h"

namespace lockstep {

absl::StatusOr<std::thread> NewThread(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a thread cannot be made (", error.what(), "); ", ThreadLimits()));
  }
}

void CallAtOnce(int count, const std::function<void(int number)>& body) {
  std::vector<std::thread> threads;
  int next = 1;
  for (; next < count; ++next) {
    absl::StatusOr<std::thread> thread =
        NewThread([&body, number = next] { body(number); });
    if (!thread.ok()) break;
    threads.push_back(*std::move(thread));
  }
  if (count > 0) body(0);
  for (; next < count; ++next) body(next);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace lockstep
