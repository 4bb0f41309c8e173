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

// What one member gives to an exchange; immutable, so that members share it.
using Parcel = std::shared_ptr<const std::vector<Leaf>>;

// ExchangeTable collects the parcels of a group's exchanges, which all members
// make in one order, counted from 0. An exchange is complete when every member
// has given a parcel under the same description.
//
// Threads: not thread-safe.
class ExchangeTable {
 public:
  // `takers` members take their answers here: all where they share a process,
  // one where each has a table of its own.
  ExchangeTable(int members, int takers) : members_(members), takers_(takers) {}
  explicit ExchangeTable(int members) : ExchangeTable(members, members) {}

  // Member `rank` comes to exchange number `sequence`.
  //
  //   kInvalidArgument  no such member, or it has come to this exchange before
  absl::Status Add(int rank, uint64_t sequence, std::string description,
                   Parcel parcel);

  // The parcels by rank, or the error that the exchange has for all members;
  // absent while members are missing. Each taker must take its answer once; the
  // exchange is forgotten with the last.
  //
  //   kInvalidArgument  members came with different descriptions; has the
  //                     description of rank 0 and the first other one
  std::optional<absl::StatusOr<std::vector<Parcel>>> Take(uint64_t sequence);

  // The members that have not come to the exchange.
  std::vector<int> Missing(uint64_t sequence) const;

  // Exchanges that some member has yet to come to or to take.
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
