// A worker's plan from its chief. The first byte is the number of servers that
// the worker knows, the second the largest size of its chunks.

#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/plan/plan.h"
#include "common/wire/wire_codec.h"
#include "google/protobuf/stubs/logging.h"
#include "lockstep/v1/coordinator.pb.h"
#include "worker/client/chunks/chunk_plan.h"
#include "worker/client/chunks/ready_chunks.h"
#include "worker/client/chunks/row_route.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep {
namespace {

// Limit of a test's allocation: tests of ParameterMemory cover larger memory.
constexpr int64_t kMaxBytes = 1 << 20;

void Require(bool promise) {
  if (!promise) abort();
}

bool IsSmall(const std::vector<VariableSpec>& variables) {
  int64_t bytes = 0;
  for (const VariableSpec& variable : variables) {
    const int64_t elements = variable.is_table() ? RowWidth(variable.shape)
                                                 : NumElements(variable.shape);
    if (elements > kMaxBytes) return false;
    bytes += elements * static_cast<int64_t>(ElementSize(variable.dtype));
    if (bytes > kMaxBytes) return false;
  }
  return true;
}

// Every chunk must lie within the memory; writes to it.
void CheckChunks(const Plan& plan,
                 const std::vector<std::vector<worker::Chunk>>& chunks,
                 const worker::ParameterMemory& memory) {
  for (const std::vector<worker::Chunk>& of_server : chunks) {
    for (const worker::Chunk& chunk : of_server) {
      size_t size = 0;
      for (const worker::ByteRange& range : chunk.ranges) {
        const auto variable = static_cast<size_t>(range.variable);
        Require(variable < plan.variables.size());
        const absl::Span<std::byte> value = memory.value(variable);
        Require(range.offset <= value.size() &&
                range.size <= value.size() - range.offset);
        if (range.size > 0) value[range.offset] = std::byte{1};
        if (range.size > 0) value[range.offset + range.size - 1] = std::byte{1};
        size += range.size;
      }
      Require(size == chunk.size);
    }
  }
}

// Rows of a table must be requested from the parts that hold them, and be
// marked at their places.
void CheckRows(const Plan& plan, worker::ParameterMemory& memory) {
  for (const Part& part : plan.parts) {
    const auto variable = static_cast<size_t>(part.variable);
    const VariableSpec& table = plan.variables[variable];
    if (!table.is_table()) continue;
    Require(memory.ChooseRows(variable, {0, table.shape[0] - 1}).ok());
    const std::vector<int64_t>& ids = memory.rows(variable).ids;
    const worker::RoutedRows routed = worker::RouteRows(part, table, ids);
    Require(routed.rows.size() == routed.places.size());
    for (size_t i = 0; i < routed.rows.size(); ++i) {
      Require(routed.places[i] < ids.size() && routed.rows[i] >= 0);
    }
  }
}

void Check(const v1::GetPlanResponse& response, int num_servers,
           size_t target_bytes) {
  const absl::StatusOr<Plan> plan = PlanFromProto(response, num_servers);
  if (!plan.ok()) return;
  const bool whole = CheckPlan(*plan, plan->variables).ok();
  const auto chunks = worker::MakeChunks(*plan, num_servers, target_bytes);
  Require(chunks.size() == static_cast<size_t>(num_servers));
  worker::ReadyChunks ready(chunks);
  size_t sent = ready.MarkRest().size();
  for (const auto& of_server : chunks) sent -= of_server.size();
  Require(sent == 0);
  if (!IsSmall(plan->variables)) return;
  absl::StatusOr<worker::ParameterMemory> memory =
      worker::ParameterMemory::Make(
          plan->variables, worker::ParameterMemory::Gradients::kPrivate);
  Require(memory.ok());
  CheckChunks(*plan, chunks, *memory);
  if (whole) CheckRows(*plan, *memory);
}

}  // namespace
}  // namespace lockstep

// Silences Protobuf, which logs every string that is no UTF-8.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  lockstep::v1::GetPlanResponse response;
  if (!response.ParseFromArray(data + 2, static_cast<int>(size - 2))) return 0;
  lockstep::Check(response, 1 + data[0] % 4, size_t{1} << (data[1] % 21));
  return 0;
}
