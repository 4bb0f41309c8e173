#ifndef LOCKSTEP_COMMON_TRACE_CLOCK_OFFSET_H_
#define LOCKSTEP_COMMON_TRACE_CLOCK_OFFSET_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep {

// ClockOffset estimates how far another process's clock is ahead of this one's,
// from the round trips of calls: the other process reads its clock at some
// moment between the call and its answer. The estimate is that of the shortest
// of the last round trips, whose half is the largest possible error. (Cristian,
// 1989) A round trip that contradicts the newest one does not count: the other
// clock was set, or is that of another process in its place.
//
// Threads: not thread-safe.
class ClockOffset {
 public:
  // Round trips that count; with one each half second, clocks drift apart by
  // less than a microsecond meanwhile.
  static constexpr size_t kRoundTrips = 16;

  struct Estimate {
    int64_t offset = 0;  // ns to be added to this process's time
    int64_t error = 0;   // at most, ns; -1: nothing is known
  };

  // Notes a round trip: a call left at `sent` and its answer arrived at
  // `received` by this process's clock; in between, the other process's clock
  // read `other`. All in ns. Ignores a round trip of negative length.
  void Note(int64_t sent, int64_t received, int64_t other);

  Estimate Get() const;

 private:
  std::array<Estimate, kRoundTrips> last_;
  size_t count_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRACE_CLOCK_OFFSET_H_
