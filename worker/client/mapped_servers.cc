#include "worker/client/mapped_servers.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/wire/shared_memory_codec.h"
#include "common/wire/wire_codec.h"
#include "worker/client/repeated_calls.h"

namespace lockstep::worker {
namespace {

constexpr char kOpen[] = "/lockstep.v1.ParameterService/OpenSharedMemory";

// The longest pause before a server that refuses is asked again: a question
// delays a step by a call, and adds a line to the log.
constexpr absl::Duration kLongestPause = absl::Minutes(1);

}  // namespace

MappedServers::MappedServers(ServerLinks& links, HeldChunks& chunks,
                             ParameterMemory& memory, std::optional<int> mirror,
                             bool mirror_alone)
    : links_(links),
      chunks_(chunks),
      memory_(memory),
      mirror_(mirror),
      mirror_alone_(mirror_alone),
      servers_(links.num_servers()),
      cut_(links.num_servers()),
      retries_(links.num_servers()) {}

bool MappedServers::IsToBeMapped(int server) const {
  // Chunks are listed by the server that owns the parts. The mirror may own
  // none, but it has the values of all.
  if (server == mirror_) return true;
  return !mirror_alone_ && !chunks_.chunks()[server].empty();
}

bool MappedServers::IsDue(int server) const {
  if (!IsToBeMapped(server)) return false;
  if (!opened_) return true;
  return cut_[server] && !Maps(server) &&
         Clock::Real().Now() >= retries_[server].due;
}

absl::StatusOr<bool> MappedServers::Open() {
  bool cut = false;
  // The gradients are in private memory: nothing can be shared.
  if (memory_.shared_gradients() == nullptr) return cut;
  for (int server = 0; server < links_.num_servers(); ++server) {
    if (!IsDue(server)) continue;
    // Before the call: the old mapping keeps the memory of a dead process
    // alive.
    servers_[server].reset();
    absl::StatusOr<MappedValues> values = OpenServer(server);
    if (links_.cancelled()) return absl::CancelledError("the job ended");
    Retry& retry = retries_[server];
    if (!values.ok()) {
      // Not an error: a server of another host or user cannot map memory.
      spdlog::info("shares no memory with ps {}: {}", server,
                   std::string(values.status().message()));
      retry.due = Clock::Real().Now() + retry.pause;
      retry.pause = std::min(2 * retry.pause, kLongestPause);
      continue;
    }
    spdlog::info("shares memory with ps {}", server);
    servers_[server] = std::make_unique<Server>(*std::move(values));
    retry = Retry();
    // A restarted server has new memory, but its chunks are cut already.
    if (cut_[server]) continue;
    chunks_.CutForMapped(server);
    cut_[server] = true;
    cut = true;
  }
  opened_ = true;
  return cut;
}

std::vector<uint64_t> MappedServers::OffsetsFor(int server) const {
  std::map<int, uint64_t> offsets;  // by the index of the part
  for (int holder = 0; holder < links_.num_servers(); ++holder) {
    // A mirror has the parts that other mirrors sum, too.
    if (holder != server && !mirror_.has_value()) continue;
    for (const Chunk& chunk : chunks_.chunks()[holder]) {
      int part = chunk.first_part;
      for (const ByteRange& range : chunk.ranges) {
        offsets[part++] = memory_.shared_offset(range.variable) + range.offset;
      }
    }
  }
  std::vector<uint64_t> by_index;
  for (const auto& [part, offset] : offsets) by_index.push_back(offset);
  return by_index;
}

absl::StatusOr<MappedValues> MappedServers::OpenServer(int server) {
  v1::OpenSharedMemoryRequest request;
  *request.mutable_identity() = ToProto(links_.self());
  *request.mutable_gradients() = ToProto(memory_.shared_gradients()->file());
  for (const uint64_t offset : OffsetsFor(server)) request.add_offsets(offset);
  v1::OpenSharedMemoryResponse response;
  RepeatedCalls calls(links_.channel(server), server, links_.cancelled());
  PassFaultPoint(FaultPoint::kWorkerShareSend);
  LOCKSTEP_RETURN_IF_ERROR(calls.CallUntilAnswered(kOpen, request, response));
  PassFaultPoint(FaultPoint::kWorkerShareAnswered);
  return MappedValues::Open(FromProto(response.values()),
                            FromProto(response.counters()));
}

absl::Status MappedServers::Copy(const Places& places, int server,
                                 const Chunk& chunk) {
  if (servers_[server] == nullptr || places.size() != chunk.num_parts) {
    return absl::InternalError(absl::StrCat("ps ", server, " told ",
                                            places.size(), " places of ",
                                            chunk.num_parts, " parts"));
  }
  for (int i = 0; i < places.size(); ++i) {
    const ByteRange& range = chunk.ranges[i];
    const absl::Status status = servers_[server]->values.Copy(
        FromProto(places[i]),
        memory_.value(range.variable).subspan(range.offset, range.size));
    // Any other error names a place outside of the server's memory, which no
    // retry cures.
    if (absl::IsAborted(status)) return status;
    if (!status.ok()) return absl::InternalError(status.message());
  }
  return absl::OkStatus();
}

absl::Status MappedServers::Reconsider(const absl::Status& status, int server) {
  // kNotFound: the server has no mapping of this worker's memory, because it
  // was restarted.
  if (!absl::IsNotFound(status) || servers_[server] == nullptr) return status;
  // Many calls fail at once; only the first one logs.
  if (servers_[server]->open.exchange(false)) {
    spdlog::info("shares no memory with ps {} any more: {}", server,
                 std::string(status.message()));
  }
  return absl::UnavailableError(status.message());
}

}  // namespace lockstep::worker
