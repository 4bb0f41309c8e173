#include "server/shard/parts/read_loans.h"

#include <utility>

namespace lockstep::server {

std::shared_ptr<ReadLoans> ReadLoans::Create(int num_buffers,
                                             OnReturned on_returned) {
  return std::shared_ptr<ReadLoans>(
      new ReadLoans(num_buffers, std::move(on_returned)));
}

ReadLoans::ReadLoans(int num_buffers, OnReturned on_returned)
    : loans_(num_buffers), on_returned_(std::move(on_returned)) {}

std::shared_ptr<const void> ReadLoans::Lend(
    int buffer, std::shared_ptr<const void> memory) {
  ++loans_[buffer];
  const void* address = memory.get();
  // A pointer to the memory whose deleter returns the loan: copies of an answer
  // share one loan.
  return {address, [book = shared_from_this(), memory = std::move(memory),
                    buffer](const void*) { book->Return(buffer); }};
}

bool ReadLoans::Claim(int buffer) {
  MutexLock lock(mutex_);
  if (loans_[buffer] == 0) return true;
  claimed_.insert(buffer);
  // The last reader may have returned the buffer before it could see the claim.
  return loans_[buffer] == 0 && claimed_.erase(buffer) == 1;
}

void ReadLoans::Return(int buffer) {
  if (--loans_[buffer] > 0) return;
  OnReturned tell;
  {
    MutexLock lock(mutex_);
    // Lent again in between: the end of that loan makes the call.
    if (loans_[buffer] > 0 || claimed_.erase(buffer) == 0) return;
    tell = on_returned_;
  }
  if (tell) tell(buffer);
}

void ReadLoans::Close() {
  MutexLock lock(mutex_);
  on_returned_ = nullptr;
}

}  // namespace lockstep::server
