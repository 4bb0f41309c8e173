// A request that is accepted has a path that begins at the root, and a host
// that is parsed the same again.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/observe/http_request.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto request = lockstep::ParseHttpRequest(text);
  if (!request.ok()) return 0;
  Require(absl::StartsWith(request->path, "/"));
  Require(!absl::StrContains(request->path, '?'));
  Require(!request->method.empty());
  lockstep::IsOwnHost(request->host, {"chief.example"});
  if (request->host.empty()) return 0;
  const auto again = lockstep::ParseHttpRequest(
      absl::StrCat("GET / HTTP/1.1\r\nHost: ", request->host, ":80\r\n\r\n"));
  Require(again.ok() && again->host == request->host);
  return 0;
}
