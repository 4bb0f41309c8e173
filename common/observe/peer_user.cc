#include "common/observe/peer_user.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace lockstep {
namespace {

// Spells an address as /proc/net/tcp does: each word of four bytes in the byte
// order of this machine, then the port.
std::string Spell(const void* address, size_t bytes, in_port_t port) {
  std::string text;
  for (size_t at = 0; at < bytes; at += sizeof(uint32_t)) {
    uint32_t word = 0;
    std::memcpy(&word, static_cast<const char*>(address) + at, sizeof(word));
    absl::StrAppendFormat(&text, "%08X", word);
  }
  return text + absl::StrFormat(":%04X", ntohs(port));
}

// One end of a connection. IPv4 within IPv6 counts as IPv4, because the peer's
// own socket is an IPv4 socket.
struct End {
  bool is_v6 = false;
  std::string spelt;
};

std::optional<End> ToEnd(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return End{false, Spell(&v4.sin_addr, sizeof(v4.sin_addr), v4.sin_port)};
  }
  if (address.ss_family != AF_INET6) return std::nullopt;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    return End{false, Spell(v6.sin6_addr.s6_addr + 12, 4, v6.sin6_port)};
  }
  return End{true, Spell(&v6.sin6_addr, sizeof(v6.sin6_addr), v6.sin6_port)};
}

}  // namespace

std::optional<uid_t> SocketOwner(absl::string_view table,
                                 const std::string& local,
                                 const std::string& remote) {
  for (const absl::string_view line : absl::StrSplit(table, '\n')) {
    // Number, local, remote, state, queues, timer, retransmissions, user,
    // timeout, inode.
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (fields.size() < 10 || fields[1] != local || fields[2] != remote) {
      continue;
    }
    uid_t user = 0;
    // A socket that was closed has the inode 0, and 0 for its user.
    if (fields[9] == "0" || !absl::SimpleAtoi(fields[7], &user)) continue;
    return user;
  }
  return std::nullopt;
}

bool IsPeerOfOwnUser(int socket) {
  sockaddr_storage peer = {};
  sockaddr_storage own = {};
  socklen_t peer_size = sizeof(peer);
  socklen_t own_size = sizeof(own);
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_size) !=
          0 ||
      getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) != 0) {
    return false;
  }
  const std::optional<End> theirs = ToEnd(peer);
  const std::optional<End> ours = ToEnd(own);
  if (!theirs.has_value() || !ours.has_value()) return false;
  // The peer's socket is in the table only if it is in the same network
  // namespace.
  std::ifstream file(theirs->is_v6 ? "/proc/self/net/tcp6"
                                   : "/proc/self/net/tcp");
  const std::string table{std::istreambuf_iterator<char>(file), {}};
  const std::optional<uid_t> user =
      SocketOwner(table, theirs->spelt, ours->spelt);
  // Root may read everything anyway.
  return user.has_value() && (*user == geteuid() || *user == 0);
}

}  // namespace lockstep
