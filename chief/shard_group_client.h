#ifndef LOCKSTEP_CHIEF_SHARD_GROUP_CLIENT_H_
#define LOCKSTEP_CHIEF_SHARD_GROUP_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "chief/shard_control_client.h"
#include "chief/shard_group.h"

namespace lockstep {

// ShardGroupClient is the servers of a job over the wire, all together or one
// at a time.
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

 private:
  std::vector<std::unique_ptr<ShardControlClient>> clients_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CHIEF_SHARD_GROUP_CLIENT_H_
