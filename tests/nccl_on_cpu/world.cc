#include "tests/nccl_on_cpu/world.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace lockstep::nccl_on_cpu {
namespace {

constexpr int kUnreadable = 0xff;  // of which floats are NaN

}  // namespace

// An abort does not signal, because it takes no lock.
template <typename Ready>
bool World::Wait(std::unique_lock<std::mutex>& lock, const Part& part,
                 const Ready& ready) {
  while (!ready()) {
    if (part.aborted->load()) return false;
    changed_.wait_for(lock, std::chrono::microseconds(200));
  }
  return true;
}

void World::AllGather(const Part& part, uint64_t sequence,
                      const std::byte* from, std::byte* to, size_t bytes) {
  std::unique_lock lock(mutex_);
  if (part.hangs) {
    Wait(lock, part, [] { return false; });
    return;
  }
  Meeting& meeting = meetings_[sequence];
  meeting.from.resize(static_cast<size_t>(members_));
  if (meeting.come == 0) meeting.bytes = bytes;
  if (meeting.bytes != bytes) {
    NoteMistake("members gather different numbers of bytes");
    meeting.broken = true;
  }
  meeting.from[static_cast<size_t>(part.rank)] = from;
  ++meeting.come;
  changed_.notify_all();
  for (int r = 0; r < members_; ++r) {
    std::byte* place = to + static_cast<size_t>(r) * bytes;
    if (place != from) std::memset(place, kUnreadable, bytes);
  }
  const bool met = Wait(
      lock, part, [&] { return meeting.come == members_ && !meeting.broken; });
  if (!met) {
    meeting.broken = true;  // others must not read memory of this one
    return;
  }
  for (int r = 0; r < members_; ++r) {
    std::byte* place = to + static_cast<size_t>(r) * bytes;
    const std::byte* source = meeting.from[static_cast<size_t>(r)];
    if (place != source) std::memcpy(place, source, bytes);
  }
  ++meeting.done;
  changed_.notify_all();
  // Others read the memory of this one until they are done, or have left.
  if (!Wait(lock, part, [&] { return meeting.done >= members_; })) {
    meeting.broken = true;
    return;
  }
  if (++meeting.done == 2 * members_) meetings_.erase(sequence);
}

bool World::Receive(std::unique_lock<std::mutex>& lock, const Part& part,
                    const Message& message) {
  std::deque<Mail*>& mail = mail_[{message.peer, part.rank}];
  if (!Wait(lock, part, [&] { return !mail.empty(); })) return false;
  Mail& first = *mail.front();
  if (first.bytes != message.bytes) {
    NoteMistake("a member receives another number of bytes than was sent");
    return Wait(lock, part, [] { return false; });
  }
  mail.pop_front();
  std::memcpy(message.data, first.data, first.bytes);
  first.taken = true;
  changed_.notify_all();
  return true;
}

void World::SendAndReceive(const Part& part, const std::vector<Message>& sends,
                           const std::vector<Message>& receives) {
  std::unique_lock lock(mutex_);
  if (part.hangs) {
    Wait(lock, part, [] { return false; });
    return;
  }
  std::deque<Mail> sent;  // keeps its elements where they are
  for (const Message& message : sends) {
    sent.push_back({message.data, message.bytes});
    mail_[{part.rank, message.peer}].push_back(&sent.back());
  }
  changed_.notify_all();
  bool whole = true;
  for (const Message& message : receives) {
    std::memset(message.data, kUnreadable, message.bytes);
  }
  for (const Message& message : receives) {
    whole = whole && Receive(lock, part, message);
  }
  whole = whole && Wait(lock, part, [&] {
            return std::all_of(sent.begin(), sent.end(),
                               [](const Mail& mail) { return mail.taken; });
          });
  if (whole) return;
  // Nothing of this member may be read any more.
  for (auto& [way, mail] : mail_) {
    if (way.first == part.rank) mail.clear();
  }
}

}  // namespace lockstep::nccl_on_cpu
