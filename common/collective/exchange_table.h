#ifndef LOCKSTEP_COMMON_COLLECTIVE_EXCHANGE_TABLE_H_
#define LOCKSTEP_COMMON_COLLECTIVE_EXCHANGE_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/collective/value.h"

namespace lockstep {

// The leaves that one member gives to an exchange; immutable, so that members
// can share them.
using Parcel = std::shared_ptr<const std::vector<Leaf>>;

// ExchangeTable collects the parcels of a group's exchanges, which all members
// must make in one order, numbered from 0. An exchange is complete when every
// member has given a parcel under the same description.
//
// Threads: not thread-safe.
class ExchangeTable {
 public:
  // `takers` members take their answers from this table: all of them if they
  // share a process, one if each member has its own table.
  ExchangeTable(int members, int takers) : members_(members), takers_(takers) {}
  explicit ExchangeTable(int members) : ExchangeTable(members, members) {}

  // Adds the parcel of member `rank` to exchange number `sequence`.
  //
  //   kInvalidArgument  no such member, or it has come to this exchange before
  absl::Status Add(int rank, uint64_t sequence, std::string description,
                   Parcel parcel);

  // Removes all parcels that member `rank` has given, as if it had not come.
  void Forget(int rank);

  // Returns the parcels by rank, or the error that the exchange has for all
  // members; nothing while members are missing. Each taker must take its answer
  // once; the last one removes the exchange.
  //
  //   kInvalidArgument  members came with different descriptions; has the
  //                     description of rank 0 and the first other one
  std::optional<absl::StatusOr<std::vector<Parcel>>> Take(uint64_t sequence);

  // Returns the members that have not given a parcel to the exchange.
  std::vector<int> Missing(uint64_t sequence) const;

  // The number of exchanges that are not complete or not taken by all.
  size_t open() const { return exchanges_.size(); }

 private:
  struct Exchange {
    std::vector<std::optional<std::string>> descriptions;  // by rank
    std::vector<Parcel> parcels;
    int come = 0;
    int taken = 0;
  };
  absl::Status Compare(const Exchange& exchange, uint64_t sequence) const;

  const int members_;
  const int takers_;
  std::map<uint64_t, Exchange> exchanges_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COLLECTIVE_EXCHANGE_TABLE_H_
