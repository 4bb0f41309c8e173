// A name that is accepted must have no second spelling but SPIFFE's, and a map
// must give no name of Lockstep's own another meaning.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/rpc/security/access_table.h"
#include "common/rpc/security/caller.h"
#include "common/rpc/security/certificate_name.h"
#include "common/rpc/security/identity_map.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto name = lockstep::ParseCertificateName(text);
  if (name.ok()) {
    const std::string uri = name->ToUri();
    Require(uri == text || absl::StartsWith(text, "spiffe://"));
    Require(lockstep::ParseCertificateName(uri).value() == *name);
    const lockstep::Caller caller({{std::string(text)}, {}}, name->job, {});
    Require(caller.roles() == lockstep::Bit(name->role));
  } else {
    Require(name.status().message().size() < 2000);
  }
  const auto map = lockstep::ParseIdentityMap(text, "map", "fashion");
  if (map.ok()) {
    for (const auto& [from, to] : *map) {
      Require(!lockstep::ParseCertificateName(from).ok());
      Require(to.job == "fashion");
    }
  } else {
    Require(map.status().message().size() < 2000);
  }
  // Such a method has no row, unless it is one of the table.
  Require(lockstep::RolesThatMay(text) == 0 || absl::StartsWith(text, "/"));
  return 0;
}
