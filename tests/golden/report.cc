#include "tests/golden/report.h"

#include "absl/strings/str_join.h"

namespace lockstep::golden {
namespace {

std::string IntsText(const std::vector<int64_t>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ","), "]");
}

}  // namespace

bool Report::Expect(absl::string_view what,
                    const std::vector<int64_t>& expected,
                    const std::vector<int64_t>& got) {
  return Expect(what, IntsText(expected), IntsText(got));
}

bool Report::ExpectSame(absl::string_view what, DType dtype,
                        const std::vector<std::byte>& expected,
                        const std::vector<std::byte>& got, Zeros zeros) {
  if (Same(dtype, expected, got, zeros)) return true;
  Add(what, Text(ToDoubles(dtype, expected)), Text(ToDoubles(dtype, got)));
  return false;
}

}  // namespace lockstep::golden
