#ifndef LOCKSTEP_DEPLOY_CLI_RUN_PORT_RESERVATION_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_PORT_RESERVATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::cli {

// PortReservation reserves one free TCP port for a server that starts later.
//
// It is a bound socket with SO_REUSEADDR that never listens. The system gives
// this port to no process that requests any port, but a server that sets
// SO_REUSEADDR, as gRPC does, can bind it and listen. So the reservation may
// last as long as the server, and other processes cannot take the port at any
// moment.
//
// Threads: not thread-safe.
class PortReservation {
 public:
  //   kResourceExhausted  no port or no file descriptor is left
  static absl::StatusOr<PortReservation> Create();

  // Reserves a given port on each local address of `host`. Returns none if the
  // name does not resolve, or to addresses of other machines alone.
  //
  //   kInvalidArgument  another process listens there, or this process must not
  //                     use the port; says the fix
  static absl::StatusOr<std::vector<PortReservation>> Take(
      const std::string& host, int port);

  PortReservation(PortReservation&& other) noexcept;
  PortReservation& operator=(PortReservation&& other) noexcept;
  ~PortReservation();

  int port() const { return port_; }

  // True if two servers could not listen at the addresses of the two.
  bool Collides(const PortReservation& other) const;

 private:
  PortReservation(int fd, int port) : fd_(fd), port_(port) {}

  int fd_;  // -1 after a move
  int port_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_PORT_RESERVATION_H_
