#ifndef LOCKSTEP_CHIEF_SHARD_GROUP_CLIENT_H_
#define LOCKSTEP_CHIEF_SHARD_GROUP_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "chief/recovery/shard_group.h"
#include "chief/servers/shard_control_client.h"
#include "common/base/status_macros.h"
#include "common/process/new_thread.h"

namespace lockstep::chief {

// ShardGroupClient calls the servers of a job over the wire, all together or
// one at a time. If several are called, each call has a thread of its own,
// if the system has one.
class ShardGroupClient final : public ShardGroup {
 public:
  // `addresses` by index of the ps task.
  ShardGroupClient(const std::vector<std::string>& addresses,
                   const Sender& chief) {
    for (const std::string& address : addresses) {
      clients_.push_back(std::make_unique<ShardControlClient>(address, chief));
      Add(*clients_.back());
    }
  }

  ShardControlClient& server(int index) { return *clients_[index]; }

 protected:
  // Calls all at once, as far as the system has threads, so that the delays of
  // slow servers do not add up.
  absl::Status AskThese(const std::vector<int>& servers, AskOne ask) override {
    std::vector<absl::Status> answers(servers.size());
    CallAtOnce(static_cast<int>(servers.size()),
               [&](int i) { answers[i] = ask(servers[i]); });
    for (size_t i = 0; i < servers.size(); ++i) {
      LOCKSTEP_RETURN_IF_ERROR(Named(servers[i], answers[i]));
    }
    return absl::OkStatus();
  }

 private:
  std::vector<std::unique_ptr<ShardControlClient>> clients_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SHARD_GROUP_CLIENT_H_
