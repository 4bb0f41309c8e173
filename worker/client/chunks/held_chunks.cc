#include "worker/client/chunks/held_chunks.h"

#include <algorithm>
#include <optional>

#include "common/base/call_limits.h"

namespace lockstep::worker {

HeldChunks::HeldChunks(const Plan& plan, const ParameterMemory& memory,
                       int num_servers, size_t max_part_bytes)
    : plan_(plan),
      memory_(memory),
      max_part_bytes_(max_part_bytes),
      chunks_(MakeChunks(plan, num_servers, max_part_bytes)) {
  for (const auto& chunks : chunks_) {
    held_.emplace_back(chunks.size());
    routed_.emplace_back(chunks.size());
    pushed_.emplace_back(chunks.size());
  }
}

void HeldChunks::CutForMapped(int server) {
  size_t total = 0;
  for (const Chunk& chunk : chunks_[server]) total += chunk.size;
  // A connection must carry all of the chunks at once: pushes to such a server
  // have no window.
  chunks_[server] = MakeChunks(plan_, static_cast<int>(chunks_.size()),
                               MappedCallBytes(total, max_part_bytes_))[server];
  held_[server].assign(chunks_[server].size(), Held());
  routed_[server].assign(chunks_[server].size(), {});
  pushed_[server].assign(chunks_[server].size(), {});
}

void HeldChunks::RouteTables() {
  for (size_t server = 0; server < chunks_.size(); ++server) {
    for (size_t i = 0; i < chunks_[server].size(); ++i) {
      const std::optional<Part>& table = chunks_[server][i].table;
      if (!table.has_value()) continue;
      routed_[server][i] = RouteRows(*table, plan_.variables[table->variable],
                                     memory_.rows(table->variable).ids);
      pushed_[server][i] = routed_[server][i];
      // Rows of the last pass are not reused, even if the step is the same.
      held_[server][i] = Held();
    }
  }
}

void HeldChunks::RouteSum(size_t variable) {
  if (!plan_.variables[variable].is_table()) return;
  const RowSum* const sum = memory_.row_sum(variable);
  if (sum == nullptr) return;
  for (size_t server = 0; server < chunks_.size(); ++server) {
    for (size_t i = 0; i < chunks_[server].size(); ++i) {
      const std::optional<Part>& table = chunks_[server][i].table;
      if (!table.has_value() || table->variable != static_cast<int>(variable)) {
        continue;
      }
      pushed_[server][i] =
          RouteRows(*table, plan_.variables[variable], sum->ids);
    }
  }
}

size_t HeldChunks::BytesOf(const Chunk& chunk, const RoutedRows& rows) const {
  if (!chunk.table.has_value()) return chunk.size;
  const VariableSpec& variable = plan_.variables[chunk.table->variable];
  return rows.rows.size() * RowWidth(variable.shape) *
         ElementSize(variable.dtype);
}

bool HeldChunks::IsAmong(int server, size_t index, Among among) const {
  if (among == Among::kAll) return true;
  if (chunks_[server][index].table.has_value()) return true;
  return among == Among::kTablesAndTaken && IsTaken(server, index);
}

HeldChunks::Lists HeldChunks::Missing(int64_t step, Among among) const {
  Lists missing(chunks_.size());
  for (size_t server = 0; server < chunks_.size(); ++server) {
    for (size_t i = 0; i < chunks_[server].size(); ++i) {
      if (!IsAmong(static_cast<int>(server), i, among)) continue;
      const Held& held = held_[server][i];
      // The pass needs no row of this server's part.
      if (chunks_[server][i].table.has_value() &&
          routed_[server][i].rows.empty()) {
        continue;
      }
      // Values of an uncommitted attempt do not count as held.
      if (step < 0 || step != held.step || held.attempt != 0 ||
          IsTaken(static_cast<int>(server), i)) {
        missing[server].push_back(i);
      }
    }
  }
  return missing;
}

int64_t HeldChunks::TimesTaken(const Chunk& chunk) const {
  if (chunk.table.has_value()) return 0;
  int64_t times = 0;
  for (const ByteRange& range : chunk.ranges) {
    times += memory_.times_taken(range.variable);
  }
  return times;
}

int64_t HeldChunks::Newest(int64_t step) const {
  for (const auto& of_server : held_) {
    for (const Held& held : of_server) step = std::max(step, held.step);
  }
  return step;
}

void HeldChunks::Settle(int64_t step, int64_t attempt) {
  for (auto& of_server : held_) {
    for (Held& held : of_server) {
      if (held.attempt == 0) continue;
      const bool committed = held.step == step && held.attempt == attempt;
      // Attempt 0 marks committed values.
      held = committed ? Held{step, 0, held.times_taken} : Held();
    }
  }
}

}  // namespace lockstep::worker
