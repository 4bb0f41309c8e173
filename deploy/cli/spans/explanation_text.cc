#include "deploy/cli/spans/explanation_text.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/text/count_text.h"
#include "nlohmann/json.hpp"

namespace lockstep::cli {
namespace {

using Json = nlohmann::json;

// By PathPart: the name in JSON, and for people.
constexpr std::array<std::pair<const char*, const char*>, kPathParts> kParts = {
    {{"token", "token"},
     {"receiving", "receive values"},
     {"reading", "read data"},
     {"computing", "compute"},
     {"announcing", "announce"},
     {"sending", "send gradients"},
     {"unknown", "no spans"},
     {"absent", "not there"},
     {"updating", "update"},
     {"committing", "commit"},
     {"checkpoint", "checkpoint"}}};

std::string Percent(double share) {
  return absl::StrFormat("%.0f %%", 100 * share);
}

std::string Milliseconds(int64_t nanoseconds) {
  const double ms = static_cast<double>(nanoseconds) / 1e6;
  if (ms < 1) return absl::StrFormat("%.3f ms", ms);
  return ms < 100 ? absl::StrFormat("%.1f ms", ms)
                  : absl::StrFormat("%.0f ms", ms);
}

std::string PathText(const StepPath& path) {
  std::vector<std::string> of_worker;
  std::vector<std::string> of_server;
  for (int part = 0; part < kPathParts; ++part) {
    // Small parts would hide the large ones.
    if (path.times[part] * 100 < path.duration()) continue;
    std::vector<std::string>& texts =
        // The parts before kUpdating are the worker's, the others the server's.
        part < static_cast<int>(PathPart::kUpdating) ? of_worker : of_server;
    texts.push_back(
        absl::StrCat(kParts[part].second, " ", Milliseconds(path.times[part])));
  }
  return absl::StrCat(
      "step ", path.step + 1, ", ", Milliseconds(path.duration()), ": worker ",
      path.worker, " ",
      of_worker.empty() ? "at once" : absl::StrJoin(of_worker, ", "),
      of_server.empty() ? ""
                        : absl::StrCat("; ps ", path.server, " ",
                                       absl::StrJoin(of_server, ", ")));
}

std::string WaitingText(const Explanation& explanation) {
  const auto most = std::max_element(
      explanation.waiting_for.begin(), explanation.waiting_for.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string text = absl::StrCat("waiting for the last worker: ",
                                  Percent(explanation.waiting));
  if (most != explanation.waiting_for.end() && most->second > 0) {
    absl::StrAppend(&text, "; ", Percent(most->second), " for worker ",
                    most->first, ", last in ", explanation.last.at(most->first),
                    " of ", explanation.steps, " steps");
  }
  return text;
}

Json PathJson(const StepPath& path) {
  Json json = {{"step", path.step + 1},
               {"seconds", static_cast<double>(path.duration()) / 1e9},
               {"worker", path.worker},
               {"server", path.server}};
  for (int part = 0; part < kPathParts; ++part) {
    json["parts"][kParts[part].first] =
        static_cast<double>(path.times[part]) / 1e9;
  }
  return json;
}

std::string WhoseWorker(const Advice& advice) {
  return advice.worker < 0 ? "" : absl::StrCat(" of worker ", advice.worker);
}

// The chief that chooses the number of backups makes one of a new worker.
std::string OneMoreBackup(const Explanation& explanation) {
  return explanation.limits.chief_sets_backups
             ? "one more worker, of which the chief makes a backup"
             : "another backup worker";
}

std::string LatenessText(const Advice& advice, const Explanation& explanation) {
  const bool backup = advice.remedy == Remedy::kBackup;
  const std::string first =
      backup ? OneMoreBackup(explanation) : "workers of equal speed";
  if (advice.worker < 0) {
    return absl::StrCat(first, ": the late worker is not always the same");
  }
  return absl::StrCat(
      backup ? absl::StrCat(first, ", or ") : "",
      "a faster machine for worker ", advice.worker, ": the others wait for it",
      backup ? "" : ", since the job's strategy has no backups");
}

std::string DeathsText(const Advice& advice, const Explanation& explanation) {
  const auto found = explanation.deaths.find(advice.worker);
  const char* meanwhile =
      explanation.shared_work ? "the others compute its micro-batches meanwhile"
      : explanation.limits.no_backups ? "the others wait for it"
                                      : "with a backup they go on without it";
  return absl::StrCat("mend worker ", advice.worker, ", which died ",
                      found == explanation.deaths.end() ? 0 : found->second,
                      " times in these steps: `lockstep logs --task worker:",
                      advice.worker, "` says why; ", meanwhile);
}

}  // namespace

std::string RemedyName(Remedy remedy) {
  switch (remedy) {
    case Remedy::kBackup:
      return "backup";
    case Remedy::kEqualWorkers:
      return "equal_workers";
    case Remedy::kSmallerMicroBatches:
      return "smaller_micro_batches";
    case Remedy::kMendWorker:
      return "mend_worker";
    case Remedy::kFasterReader:
      return "faster_reader";
    case Remedy::kWorkerNetwork:
      return "worker_network";
    case Remedy::kSharedMemory:
      return "shared_memory";
    case Remedy::kLargerPushes:
      return "larger_pushes";
    case Remedy::kBFloat16:
      return "bfloat16";
    case Remedy::kMoreParts:
      return "more_parts";
    case Remedy::kMoreServers:
      return "more_servers";
    case Remedy::kMoreCompute:
      return "more_compute";
  }
  return "";
}

std::string AdviceText(const Advice& advice, const Explanation& explanation) {
  switch (advice.remedy) {
    case Remedy::kBackup:
    case Remedy::kEqualWorkers:
      return LatenessText(advice, explanation);
    case Remedy::kSmallerMicroBatches:
      return "smaller micro-batches, by a larger micro_batches_per_step or a "
             "smaller micro_batches_per_push: workers wait for the last one of "
             "a step";
    case Remedy::kMendWorker:
      return DeathsText(advice, explanation);
    case Remedy::kFasterReader:
      return absl::StrCat("a faster reader", WhoseWorker(advice),
                          ": passes wait for batches");
    case Remedy::kWorkerNetwork:
      return absl::StrCat(
          "a faster network", WhoseWorker(advice),
          ": its values and gradients take longer than those "
          "of others",
          explanation.limits.no_backups || explanation.shared_work
              ? ""
              : absl::StrCat("; or ", OneMoreBackup(explanation)));
    case Remedy::kSharedMemory:
      return "shared memory: workers and servers of one host send over the "
             "network (--shared_memory, one /dev/shm)";
    case Remedy::kLargerPushes:
      return "fewer gradients on the way, by a larger micro_batches_per_push; "
             "without that field the chief chooses";
    case Remedy::kBFloat16:
      return absl::StrCat(
          "gradient_wire_type: BFLOAT16, half the bytes of gradients",
          explanation.limits.no_servers ? "" : "; then more servers");
    case Remedy::kMoreParts:
      return absl::StrCat("more parts, by a smaller max_part_bytes: ps ",
                          advice.server,
                          " updates few large ones after the last gradient");
    case Remedy::kMoreServers:
      return advice.server < 0
                 ? "more servers: values and gradients come over more networks"
                 : absl::StrCat("more servers: ps ", advice.server,
                                " is busy with updates");
    case Remedy::kMoreCompute:
      // A worker that is alone, in a job without backups, stays alone.
      return absl::StrCat(
          "faster computing: a GPU, more --compute_threads, or smaller batches",
          explanation.limits.no_backups && explanation.workers == 1
              ? ""
              : " on more workers");
  }
  return "";
}

std::string ExplanationText(const Explanation& it) {
  std::string text = absl::StrCat(
      "steps ", it.first_step, " to ", it.last_step, ", ",
      CountText(it.workers, "worker"), ", ", CountText(it.servers, "server"),
      it.clock_error < 0
          ? ", clocks not compared"
          : absl::StrCat(", clocks within ", Milliseconds(it.clock_error)));
  if (!it.silent.empty()) {
    absl::StrAppend(&text, "; no spans from ", absl::StrJoin(it.silent, ", "));
  }
  absl::StrAppend(&text, "\nmedian ", PathText(it.median), "\nslowest ",
                  PathText(it.slowest), "\n");
  absl::StrAppend(&text, "computing ", Percent(it.share(PathPart::kComputing)),
                  ", reading data ", Percent(it.share(PathPart::kReading)),
                  ", worker not there ", Percent(it.share(PathPart::kAbsent)),
                  it.share(PathPart::kUnknown) > 0
                      ? absl::StrCat(", of workers without spans ",
                                     Percent(it.share(PathPart::kUnknown)))
                      : "",
                  "\n");
  absl::StrAppend(
      &text, "network ", Percent(it.network()), ": values ",
      Percent(it.share(PathPart::kReceiving)), ", gradients ",
      Percent(it.share(PathPart::kSending)), ", calls of ps 0 ",
      Percent(it.share(PathPart::kToken) + it.share(PathPart::kAnnouncing)),
      "\n");
  absl::StrAppend(&text, "update ", Percent(it.share(PathPart::kUpdating)),
                  ", commit ", Percent(it.share(PathPart::kCommitting)),
                  ", checkpoint copy ",
                  Percent(it.share(PathPart::kCheckpoint)), "\n");
  absl::StrAppend(&text, WaitingText(it), "\n");
  const char* how = "would help most";
  for (const Advice& advice : it.advice) {
    absl::StrAppend(&text, how, " (", Percent(advice.share),
                    " of the time): ", AdviceText(advice, it), "\n");
    how = "then";
  }
  return text;
}

std::string ExplanationJson(const Explanation& it) {
  Json json = {
      {"first_step", it.first_step},
      {"last_step", it.last_step},
      {"workers", it.workers},
      {"servers", it.servers},
      {"clock_error_seconds",
       it.clock_error < 0 ? Json()
                          : Json(static_cast<double>(it.clock_error) / 1e9)},
      {"silent_tasks", it.silent},
      {"median", PathJson(it.median)},
      {"slowest", PathJson(it.slowest)},
      {"waiting_for_last_worker", it.waiting},
      {"network", it.network()}};
  for (int part = 0; part < kPathParts; ++part) {
    json["shares"][kParts[part].first] = it.shares[part];
  }
  json["waiting_for"] = Json::array();
  for (const auto& [worker, share] : it.waiting_for) {
    json["waiting_for"].push_back({{"worker", worker},
                                   {"share", share},
                                   {"last_in_steps", it.last.at(worker)}});
  }
  json["deaths"] = Json::array();
  for (const auto& [worker, count] : it.deaths) {
    json["deaths"].push_back({{"worker", worker}, {"count", count}});
  }
  json["advice"] = Json::array();
  for (const Advice& advice : it.advice) {
    Json one = {{"remedy", RemedyName(advice.remedy)},
                {"share", advice.share},
                {"text", AdviceText(advice, it)}};
    if (advice.worker >= 0) one["worker"] = advice.worker;
    if (advice.server >= 0) one["server"] = advice.server;
    json["advice"].push_back(std::move(one));
  }
  // A host's or task's name need not be UTF-8, for which dump() would throw.
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lockstep::cli
