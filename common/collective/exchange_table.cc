#include "common/collective/exchange_table.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {

absl::Status ExchangeTable::Add(int rank, uint64_t sequence,
                                std::string description, Parcel parcel) {
  if (rank < 0 || rank >= members_) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " must be at least 0 and below ", members_,
                     ", the members of the group"));
  }
  Exchange& exchange = exchanges_[sequence];
  const auto size = static_cast<size_t>(members_);
  // The first member to come makes the exchange.
  exchange.descriptions.resize(size);
  exchange.parcels.resize(size);
  const auto place = static_cast<size_t>(rank);
  if (exchange.descriptions[place].has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", rank, " has come to exchange ", sequence, " before"));
  }
  exchange.descriptions[place] = std::move(description);
  exchange.parcels[place] = std::move(parcel);
  ++exchange.come;
  return absl::OkStatus();
}

void ExchangeTable::Forget(int rank) {
  const auto place = static_cast<size_t>(rank);
  for (auto entry = exchanges_.begin(); entry != exchanges_.end();) {
    Exchange& exchange = entry->second;
    if (place < exchange.descriptions.size() &&
        exchange.descriptions[place].has_value()) {
      exchange.descriptions[place].reset();
      exchange.parcels[place].reset();
      --exchange.come;
    }
    entry = exchange.come == 0 ? exchanges_.erase(entry) : std::next(entry);
  }
}

absl::Status ExchangeTable::Compare(const Exchange& exchange,
                                    uint64_t sequence) const {
  const auto& all = exchange.descriptions;
  for (size_t r = 1; r < all.size(); ++r) {
    if (*all[r] == *all[0]) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "call ", sequence, " of the group is ", *all[0], " at rank 0 and ",
        *all[r], " at rank ", r,
        "; all members must make the same calls in the same order"));
  }
  return absl::OkStatus();
}

std::optional<absl::StatusOr<std::vector<Parcel>>> ExchangeTable::Take(
    uint64_t sequence) {
  const auto found = exchanges_.find(sequence);
  if (found == exchanges_.end() || found->second.come < members_) {
    return std::nullopt;
  }
  Exchange& exchange = found->second;
  const absl::Status alike = Compare(exchange, sequence);
  // Parcels are shared pointers, so takers share the values.
  std::vector<Parcel> parcels = exchange.parcels;
  // Also after an error: each taker must get it.
  if (++exchange.taken == takers_) exchanges_.erase(found);
  if (!alike.ok()) return alike;
  return parcels;
}

std::vector<int> ExchangeTable::Missing(uint64_t sequence) const {
  const auto found = exchanges_.find(sequence);
  std::vector<int> missing;
  for (int r = 0; r < members_; ++r) {
    const bool here =
        found != exchanges_.end() &&
        found->second.descriptions[static_cast<size_t>(r)].has_value();
    if (!here) missing.push_back(r);
  }
  return missing;
}

}  // namespace lockstep
