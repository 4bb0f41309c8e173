#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_LOCAL_HOSTS_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_LOCAL_HOSTS_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace lockstep {

// LocalHosts knows the names and addresses of one machine.
class LocalHosts {
 public:
  // All addresses that a name resolves to, as text; empty when it does not.
  using Resolver = std::function<std::vector<std::string>(const std::string&)>;

  struct Machine {
    std::string host_name;
    std::set<std::string> addresses;  // of its interfaces, as inet_ntop writes
    Resolver resolve;
  };

  // Of the machine that this process runs on. Names are resolved by the system,
  // which may take as long as its name servers do.
  static LocalHosts OfThisMachine();

  explicit LocalHosts(Machine machine);

  // True for loopback and interface addresses, for localhost and the machine's
  // own name, and for names that resolve to nothing but such addresses. False
  // for 0.0.0.0 and ::, to which nobody can connect.
  bool Contains(const std::string& host) const;

 private:
  bool ContainsAddress(const std::string& address) const;

  const Machine machine_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_LOCAL_HOSTS_H_
