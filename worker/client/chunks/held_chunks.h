#ifndef LOCKSTEP_WORKER_CLIENT_CHUNKS_HELD_CHUNKS_H_
#define LOCKSTEP_WORKER_CLIENT_CHUNKS_HELD_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "common/plan/plan.h"
#include "worker/client/chunks/chunk_plan.h"
#include "worker/client/chunks/row_route.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// HeldChunks records, for the variables of a job cut into chunks, which step's
// values the worker's memory holds of each chunk, and which rows of tables the
// current pass needs.
//
// Threads: not thread-safe, but calls for different chunks may run at the same
//          time: the callback of the call that moves a chunk may use that
//          chunk's state, and the owner's thread must not meanwhile.
// Borrows: the memory.
class HeldChunks {
 public:
  // The step of the values in memory of a chunk.
  struct Held {
    int64_t step = -1;
    // The attempt of the push that brought the values, until that attempt is
    // known to be committed; 0: the values are those of a committed step.
    int64_t attempt = 0;
    // HeldChunks::TimesTaken() when the values came; set by Hold().
    int64_t times_taken = 0;
  };
  using Lists = std::vector<std::deque<size_t>>;  // of chunks, by server

  HeldChunks(const Plan& plan, const ParameterMemory& memory, int num_servers,
             size_t max_part_bytes);

  const std::vector<std::vector<Chunk>>& chunks() const { return chunks_; }
  const Chunk& chunk(int server, size_t index) const {
    return chunks_[server][index];
  }
  size_t num_variables() const { return plan_.variables.size(); }
  const VariableSpec& variable(int index) const {
    return plan_.variables[index];
  }

  // Cuts the parts of a server anew into few large chunks: with shared memory
  // no bytes travel, and the number of calls determines the time. The chunks
  // are so few that one connection can carry the calls for all of them at once,
  // apart from parts of tables, which remain separate chunks. Marks all of the
  // server's chunks as not held.
  void CutForMapped(int server);

  // Assigns the rows that the pass has chosen in memory to the parts that have
  // them. Marks all chunks of tables as not held.
  void RouteTables();
  // The chosen rows of a chunk that is a part of a table.
  const RoutedRows& rows(int server, size_t index) const {
    return routed_[server][index];
  }

  // Assigns the rows of a table's RowSum, if memory has one, to the parts that
  // have them. Must be called before the table's gradient is pushed.
  void RouteSum(size_t variable);
  // The rows of the gradient of a chunk that is a part of a table: the chosen
  // ones, or those of a sum.
  const RoutedRows& gradient_rows(int server, size_t index) const {
    return pushed_[server][index];
  }

  // Bytes of the values of a chunk, and of its gradient.
  size_t ValueBytes(int server, size_t index) const {
    return BytesOf(chunks_[server][index], routed_[server][index]);
  }
  size_t GradientBytes(int server, size_t index) const {
    return BytesOf(chunks_[server][index], pushed_[server][index]);
  }

  const Held& held(int server, size_t index) const {
    return held_[server][index];
  }
  void Hold(int server, size_t index, const Held& held) {
    held_[server][index] = held;
    held_[server][index].times_taken = TimesTaken(chunks_[server][index]);
  }
  // The chunks among which Missing() looks.
  enum class Among {
    kAll,
    kTables,          // parts of tables
    kTablesAndTaken,  // also those of variables that were taken since they came
  };
  // Returns the chunks whose values of committed `step` the memory does not
  // hold; if `step` is negative, all chunks. A chunk counts as not held once
  // ParameterMemory::TakeValue() was called for one of its variables. Parts of
  // tables of which the pass needs no rows are never missing.
  Lists Missing(int64_t step, Among among = Among::kAll) const;
  // Returns the newest step among those of the held chunks and `step`.
  int64_t Newest(int64_t step) const;
  // Must be called with the step and attempt of each token. Values that pushes
  // for `attempt` brought become values of committed `step`; values that other
  // attempts brought are marked as not held.
  void Settle(int64_t step, int64_t attempt);

 private:
  bool IsAmong(int server, size_t index, Among among) const;
  // True if a variable of the chunk was taken since its values came.
  bool IsTaken(int server, size_t index) const {
    return held_[server][index].times_taken !=
           TimesTaken(chunks_[server][index]);
  }
  // The sum of ParameterMemory::times_taken() over the chunk's variables: it
  // changes when one of them is taken.
  int64_t TimesTaken(const Chunk& chunk) const;
  size_t BytesOf(const Chunk& chunk, const RoutedRows& rows) const;

  const Plan plan_;
  const ParameterMemory& memory_;
  const size_t max_part_bytes_;
  std::vector<std::vector<Chunk>> chunks_;       // by server
  std::vector<std::vector<Held>> held_;          // as chunks_
  std::vector<std::vector<RoutedRows>> routed_;  // as chunks_
  std::vector<std::vector<RoutedRows>> pushed_;  // likewise, of gradients
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_CHUNKS_HELD_CHUNKS_H_
