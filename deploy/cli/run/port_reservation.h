#ifndef LOCKSTEP_DEPLOY_CLI_RUN_PORT_RESERVATION_H_
#define LOCKSTEP_DEPLOY_CLI_RUN_PORT_RESERVATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep {

// PortReservation keeps one free TCP port for a server that is yet to start.
//
// It is a bound socket with SO_REUSEADDR that never listens. Nobody who asks
// the system for any port gets this one, while a server that sets SO_REUSEADDR
// itself, as gRPC does, can bind it and listen: so the reservation may last as
// long as the server, and no moment is left in which somebody else could take
// the port.
class PortReservation {
 public:
  //   kResourceExhausted  no port or no file descriptor is left
  static absl::StatusOr<PortReservation> Create();

  // The same for a port that is given, on each address that `host` has here.
  //
  //   kInvalidArgument  another process listens there, or this one may not use
  //                     the port; says what to do
  static absl::StatusOr<std::vector<PortReservation>> Take(
      const std::string& host, int port);

  PortReservation(PortReservation&& other) noexcept;
  PortReservation& operator=(PortReservation&& other) noexcept;
  ~PortReservation();

  int port() const { return port_; }

 private:
  PortReservation(int fd, int port) : fd_(fd), port_(port) {}

  int fd_;  // -1 once moved from
  int port_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_RUN_PORT_RESERVATION_H_
