#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_LENT_VIEWS_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_LENT_VIEWS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "server/shard/shard.h"
#include "tests/conformance/simulation/job.h"
#include "worker/client/mapped_values.h"

namespace lockstep::simulation {

// The value of a part, as an answer has it.
struct LentValue {
  float value = 0;
  // Where the worker's memory maps it, if it copies values by itself.
  std::shared_ptr<const worker::MappedValues> memory = nullptr;
  SharedPlace place = {};
  int process = -1;  // of the server
};

// LentViews reads the values that a server lends for its answers. Where there
// is chaos it goes on to read them, as gRPC does that sends them, and
// notes whether they are written to meanwhile.
class LentViews {
 public:
  LentViews(Job& job, int server) : job_(job), server_(server) {}

  // `process`: that of the server. `share`: the worker copies the value by
  // itself, if values are shared.
  LentValue Read(int process, const std::shared_ptr<server::Shard>& shard,
                 const server::LentBytes& lent, bool share);
  // Ends all reads, as a server does that discards its shard.
  void BreakOff();
  // Must be called after each event of the server.
  void Check();

 private:
  struct View {
    server::LentBytes lent;
    float value = 0;
  };

  std::shared_ptr<const worker::MappedValues> Map(
      const std::shared_ptr<server::Shard>& shard);

  Job& job_;
  const int server_;
  std::list<View> views_;
  // The memory of a shard, mapped as a worker maps it.
  std::weak_ptr<server::Shard> mapped_shard_;
  std::shared_ptr<const worker::MappedValues> mapped_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_LENT_VIEWS_H_
