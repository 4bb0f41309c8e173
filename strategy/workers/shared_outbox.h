#ifndef LOCKSTEP_STRATEGY_WORKERS_SHARED_OUTBOX_H_
#define LOCKSTEP_STRATEGY_WORKERS_SHARED_OUTBOX_H_

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "common/collective/exchange_table.h"
#include "common/memory/shared_memory.h"
#include "lockstep/v1/group.pb.h"

namespace lockstep::strategy {

// SharedOutbox is memory in which a member puts the payloads of an exchange, so
// that other members of its host read them in place of receiving them.
//
// The memory stays as large as the largest exchange was.
//
// Threads: one call at a time.
// Units:   bytes.
class SharedOutbox {
 public:
  // Smaller payloads are not worth a place: a message carries them as fast.
  static constexpr size_t kSmallest = size_t{64} << 10;

  // Begins an exchange with payloads of `size` bytes in all. All receivers must
  // have the payloads of the exchange before. Returns false if there is no such
  // memory; it is not asked for again then.
  bool Begin(size_t size);

  // Copies the payload of `parcel` into the memory unless it is there already,
  // and returns its place. The payloads of an exchange must not have more bytes
  // than Begin() was told.
  v1::SharedPayload Place(const Parcel& parcel);

 private:
  bool refused_ = false;
  std::unique_ptr<SharedMemory> memory_;
  size_t used_ = 0;
  // The places of the exchange's parcels in bytes(). Owns no parcels, which may
  // be large.
  std::map<const std::vector<Leaf>*, size_t> places_;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_WORKERS_SHARED_OUTBOX_H_
