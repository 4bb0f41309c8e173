#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_LOCAL_HOSTS_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_LOCAL_HOSTS_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace lockstep::cli {

// LocalHosts knows the names and addresses of one machine.
//
// Threads: immutable; safe to share if its resolver is.
class LocalHosts {
 public:
  // Returns all addresses that a name resolves to, as text; empty if there are
  // none.
  using Resolver = std::function<std::vector<std::string>(const std::string&)>;

  struct Machine {
    std::string host_name;
    // Addresses of its interfaces, in the form of inet_ntop.
    std::set<std::string> addresses;
    Resolver resolve;
  };

  // Returns the hosts of this machine. The system resolves names, which may
  // take as long as its name servers do.
  static LocalHosts OfThisMachine();

  explicit LocalHosts(Machine machine);

  // True for loopback and interface addresses, for localhost and the machine's
  // own name, and for names that resolve only to such addresses. False for
  // 0.0.0.0 and ::, because no process can connect to them.
  bool Contains(const std::string& host) const;

  // True for an address, and for a name that resolves as it stands. The
  // machine's own name need not, nor one that ends with .localhost.
  bool Resolves(const std::string& host) const;

 private:
  bool ContainsAddress(const std::string& address) const;

  const Machine machine_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_LOCAL_HOSTS_H_
