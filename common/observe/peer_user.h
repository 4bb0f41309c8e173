#ifndef LOCKSTEP_COMMON_OBSERVE_PEER_USER_H_
#define LOCKSTEP_COMMON_OBSERVE_PEER_USER_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// Returns the user of the socket with the addresses `local` and `remote` in
// `table`, the text of /proc/net/tcp. The addresses must be spelt as there.
// Returns nothing if there is no such socket, or if no process holds it any
// more.
std::optional<uid_t> SocketOwner(absl::string_view table,
                                 const std::string& local,
                                 const std::string& remote);

// True if the peer of a connection is a process of this machine that belongs to
// the user of this process or to root. Processes in other containers count as
// other machines.
bool IsPeerOfOwnUser(int socket);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBSERVE_PEER_USER_H_
