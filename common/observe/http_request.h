#ifndef LOCKSTEP_COMMON_OBSERVE_HTTP_REQUEST_H_
#define LOCKSTEP_COMMON_OBSERVE_HTTP_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The parts of an HTTP request that choose its answer.
struct HttpRequest {
  std::string method;
  std::string path;  // without its query
  std::string host;  // without its port, in lower case; empty: none is named
};

// Parses the first line of a request and its headers, which must end with an
// empty line. The rest of `text` is ignored.
//
//   kInvalidArgument  not in this form; two headers Host; or a byte in the
//                     first line or in Host that is neither printable ASCII nor
//                     a blank or tab
absl::StatusOr<HttpRequest> ParseHttpRequest(absl::string_view text);

// True if a request for `host` is meant for this server: an address in numbers,
// "localhost", one of `names` in lower case, or none. A web page of another
// site whose name leads here (DNS rebinding) makes requests for its own name.
bool IsOwnHost(absl::string_view host, const std::vector<std::string>& names);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBSERVE_HTTP_REQUEST_H_
