#include "tests/benchmark/comparison.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/rpc/poller_limit.h"

namespace lockstep::benchmark {
namespace {

using Rows = std::vector<Row>;

Goal AtMost(double limit) { return {limit, false}; }
Goal AtLeast(double limit) { return {limit, true}; }

Candidate ScalarOf(const ComparisonOptions& options) {
  Candidate candidate = options.base;
  candidate.model = "scalar";
  candidate.steps = options.scalar_steps;
  return candidate;
}

Candidate WithWorkers(Candidate candidate, int workers) {
  candidate.workers = workers;
  return candidate;
}

// The plain programs have one server and none of lockstep's options.
Candidate Plain(const std::string& system, const Candidate& lockstep) {
  Candidate plain;
  plain.system = system;
  plain.model = lockstep.model;
  plain.bytes = lockstep.bytes;
  plain.workers = lockstep.workers;
  plain.warmup = lockstep.warmup;
  plain.steps = lockstep.steps;
  return plain;
}

std::string Workers(int workers) {
  return absl::StrCat(workers, workers == 1 ? " worker" : " workers");
}

// The candidate with a model of `bytes`, for about the same total time: the
// number of steps follows from the ratio of sizes, within bounds.
Candidate WithBytes(Candidate candidate, int64_t bytes) {
  bytes = std::max<int64_t>(4, bytes / 4 * 4);
  const int64_t most = 10 * candidate.steps;
  const int64_t least = std::max<int64_t>(1, candidate.steps / 3);
  candidate.steps =
      std::clamp(candidate.steps * candidate.bytes / bytes, least, most);
  candidate.bytes = bytes;
  return candidate;
}

Rows TcpRows(const std::string& name, const Candidate& base, double goal) {
  const Candidate tcp = Plain("tcp", base);
  const Candidate two_phase = Plain("tcp_two_phase", base);
  const Candidate bare = Plain("chunk", base);
  const std::string workers = Workers(base.workers);
  const std::string who = absl::StrCat("step, ", workers);
  return {
      {name, who + " / plain TCP, both ways at once", Metric::kStepMs, base,
       tcp, AtMost(goal)},
      {name, who + " / plain TCP, two phases", Metric::kStepMs, base, two_phase,
       std::nullopt},
      {name, who + " / bare gRPC", Metric::kStepMs, base, bare, std::nullopt},
      {name, absl::StrCat("bare gRPC, ", workers, " / plain TCP"),
       Metric::kStepMs, bare, tcp, std::nullopt}};
}

Rows Tcp1(const ComparisonOptions& options) {
  return TcpRows("tcp1", WithWorkers(options.base, 1), 1.15);
}

Rows Tcp2(const ComparisonOptions& options) {
  return TcpRows("tcp2", options.base, 1.35);
}

Rows Backup(const ComparisonOptions& options) {
  Candidate all = WithWorkers(options.base, 3);
  all.aggregate = 3;
  Candidate backup = all;
  backup.aggregate = 2;
  return {{"backup", "3 workers, 1 of them a backup / 3 workers",
           Metric::kStepMs, backup, all, AtMost(1)}};
}

Row NaiveRow(const std::string& system, const std::string& what,
             const Candidate& base, std::optional<Goal> goal) {
  Candidate naive = Plain(system, base);
  naive.warmup = std::min<int64_t>(naive.warmup, 2);
  naive.steps = std::max<int64_t>(1, naive.steps / 3);
  return {"naive",
          absl::StrCat(what, " / step, ", Workers(base.workers)),
          Metric::kStepMs,
          naive,
          base,
          goal};
}

// Most of the first one's cost comes from the allocator, which releases the
// memory of every message; the second row shows how much.
Rows Naive(const ComparisonOptions& options) {
  return {NaiveRow("naive", "gRPC as one writes it first", options.base,
                   AtLeast(5)),
          NaiveRow("naive_tuned", "the same, allocator as ours", options.base,
                   std::nullopt)};
}

Rows ResNet50(const ComparisonOptions& options) {
  Candidate resnet50 = options.base;
  resnet50.model = "resnet50";
  return {{"resnet50", "161 tensors / one of as many bytes", Metric::kStepMs,
           resnet50, options.base, AtMost(1.05)}};
}

Rows Servers(const ComparisonOptions& options) {
  Candidate one = options.base;
  one.servers = 1;
  Candidate two = options.base;
  two.servers = 2;
  return {{"servers", "2 servers / 1 server", Metric::kStepMs, two, one,
           AtMost(1.1)}};
}

Rows Scalar(const ComparisonOptions& options) {
  Candidate scalar = ScalarOf(options);
  scalar.servers = 1;
  const std::string who =
      absl::StrCat("scalar step, ", Workers(scalar.workers));
  return {{"scalar", who + " / plain TCP", Metric::kStepMs, scalar,
           Plain("tcp", scalar), AtMost(3)},
          {"scalar", who + ", ms", Metric::kStepMs, scalar, std::nullopt,
           AtMost(0.2)},
          {"scalar", who + " / a bare gRPC message each way", Metric::kStepMs,
           scalar, Plain("stream", scalar), std::nullopt}};
}

Rows Cpu(const ComparisonOptions& options) {
  const Candidate tcp = Plain("tcp", options.base);
  const Candidate bare = Plain("chunk", options.base);
  return {{"cpu", "CPU time of a step / plain TCP, both ways at once",
           Metric::kCpuMs, options.base, tcp, AtMost(1.4)},
          {"cpu", "CPU time of a step / bare gRPC", Metric::kCpuMs,
           options.base, bare, std::nullopt},
          {"cpu", "CPU time of bare gRPC / plain TCP", Metric::kCpuMs, bare,
           tcp, std::nullopt}};
}

Rows Memory(const ComparisonOptions& options) {
  const auto row = [&](const std::string& what, Metric metric,
                       std::optional<Goal> goal) {
    return Row{"memory", what, metric, options.base, std::nullopt, goal};
  };
  return {row("server: heap, stacks and programs, MiB", Metric::kServerMiB,
              AtMost(100)),
          row("server: shared memory beyond its state, MiB", Metric::kSharedMiB,
              std::nullopt),
          row("server: peak beyond its state, MiB", Metric::kPeakMiB,
              std::nullopt)};
}

// Compares the base with a change against the base itself.
Rows ChangedRows(const std::string& name, const std::string& what,
                 const Candidate& changed, double goal,
                 const ComparisonOptions& options) {
  return {{name, what, Metric::kStepMs, changed, options.base, AtMost(goal)}};
}

Rows Bf16(const ComparisonOptions& options) {
  Candidate changed = options.base;
  changed.job_text = "gradient_wire_type: BFLOAT16";
  return ChangedRows("bf16", "gradients as bfloat16 / as float32", changed,
                     0.95, options);
}

Rows SharedMemory(const ComparisonOptions& options) {
  Candidate changed = options.base;
  changed.shared_memory = true;
  return ChangedRows("shared_memory", "shared memory / gRPC", changed, 0.4,
                     options);
}

// Compares a state file that survives its process, with the default leases,
// against neither. Step records are written in both cases: to file-backed or to
// private memory.
Row DurableRow(const std::string& what, Metric metric, const Candidate& base,
               std::optional<Goal> goal) {
  Candidate durable = base;
  durable.heartbeat_ms = 500;
  durable.lease_ms = 2000;
  Candidate without = base;
  without.own_memory = true;
  without.heartbeat_ms = 5000;
  without.lease_ms = 600000;
  return {"durable", what, metric, durable, without, goal};
}

Rows Durable(const ComparisonOptions& options) {
  const Candidate scalar = ScalarOf(options);
  return {DurableRow("state that outlives processes, and leases / neither",
                     Metric::kStepMs, options.base, AtMost(1.03)),
          DurableRow("the same: CPU time", Metric::kCpuMs, options.base,
                     std::nullopt),
          DurableRow("the same of a scalar step", Metric::kStepMs, scalar,
                     std::nullopt)};
}

// Adds a step without one of the optimizations.
void AddTechnique(const std::string& what, const Candidate& without,
                  const Candidate& with, Rows& rows) {
  rows.push_back({"techniques", what + ": step", Metric::kStepMs, without, with,
                  std::nullopt});
  rows.push_back({"techniques", what + ": CPU time", Metric::kCpuMs, without,
                  with, std::nullopt});
}

Rows Techniques(const ComparisonOptions& options) {
  Rows rows;
  const Candidate scalar = ScalarOf(options);
  Candidate all_poll = scalar;
  all_poll.pollers = GrpcPollers();
  AddTechnique("a step of one float, all of gRPC's threads poll", all_poll,
               scalar, rows);
  Candidate one_polls = options.base;
  one_polls.pollers = 1;
  AddTechnique("one of gRPC's threads polls", one_polls, options.base, rows);
  for (const int64_t chunk :
       {int64_t{1} << 18, int64_t{1} << 21, int64_t{1} << 22}) {
    Candidate cut = options.base;
    cut.job_text = absl::StrCat("max_part_bytes: ", chunk);
    AddTechnique(absl::StrCat("chunks of ", chunk >> 10, " KiB"), cut,
                 options.base, rows);
  }
  Candidate on_arrival = options.base;
  on_arrival.compatible = true;
  AddTechnique("summed on arrival", on_arrival, options.base, rows);
  return rows;
}

void AddGrowthRow(const std::string& name, const Candidate& candidate,
                  Rows& rows) {
  rows.push_back(
      {name,
       absl::StrFormat(
           "%s of %.4g MiB / plain TCP", Workers(candidate.workers),
           static_cast<double>(candidate.bytes) / (int64_t{1} << 20)),
       Metric::kStepMs, candidate, Plain("tcp", candidate), std::nullopt});
}

// The server processes the same number of bytes in every step.
Rows GrowthWorkers(const ComparisonOptions& options) {
  Rows rows;
  for (const int workers : {1, 2, 4, 8}) {
    AddGrowthRow("growth_workers",
                 WithBytes(WithWorkers(options.base, workers),
                           2 * options.base.bytes / workers),
                 rows);
  }
  return rows;
}

Rows GrowthSizes(const ComparisonOptions& options) {
  Rows rows;
  for (const double factor : {0.01, 0.1, 1.0, 10.0}) {
    const double bytes = static_cast<double>(options.base.bytes) * factor;
    AddGrowthRow("growth_sizes",
                 WithBytes(options.base, static_cast<int64_t>(bytes)), rows);
  }
  return rows;
}

// With certificates on each connection against none. Tensors in shared memory
// are not encrypted.
Rows Tls(const ComparisonOptions& options) {
  const Candidate plain = WithWorkers(options.base, 1);
  const Candidate tcp = Plain("tcp", plain);
  const Candidate openssl = Plain("tcp_openssl", plain);
  const auto encrypted = [](Candidate candidate) {
    candidate.tls = true;
    return candidate;
  };
  Candidate shared = plain;
  shared.shared_memory = true;
  Candidate scalar = WithWorkers(ScalarOf(options), 1);
  scalar.servers = 1;
  const Candidate tls = encrypted(plain);
  return {{"tls", "step, 1 worker: TLS / plain", Metric::kStepMs, tls, plain,
           AtMost(2.7)},
          {"tls", "the same / bare OpenSSL over TCP", Metric::kStepMs, tls,
           openssl, AtMost(1.35)},
          {"tls", "bare OpenSSL over TCP / plain TCP", Metric::kStepMs, openssl,
           tcp, std::nullopt},
          {"tls", "CPU time of a step: TLS / plain", Metric::kCpuMs, tls, plain,
           std::nullopt},
          {"tls", "CPU time of a step: TLS / bare OpenSSL over TCP",
           Metric::kCpuMs, tls, openssl, std::nullopt},
          {"tls", "step in shared memory: TLS / plain", Metric::kStepMs,
           encrypted(shared), shared, AtMost(1.1)},
          {"tls", "step of one float: TLS / plain", Metric::kStepMs,
           encrypted(scalar), scalar, AtMost(1.35)}};
}

// The norm of the mean gradients limited on the servers, against no clipping:
// on one server, and on two, which need the chief for it. The limit is so high
// that values stay the same, which every worker checks.
Rows Clipping(const ComparisonOptions& options) {
  const auto clipped = [](Candidate candidate) {
    candidate.job_text = "clipping { kind: MEAN_GLOBAL_NORM limit: 1e30 }";
    return candidate;
  };
  Rows rows;
  const auto add = [&](const std::string& what, Candidate plain) {
    for (const int servers : {1, 2}) {
      plain.servers = servers;
      rows.push_back({"clipping",
                      absl::StrCat(what, ", ", servers,
                                   servers == 1 ? " server" : " servers",
                                   ": norm of the mean limited / not"),
                      Metric::kStepMs, clipped(plain), plain, std::nullopt});
    }
  };
  add("step", options.base);
  Candidate shared = options.base;
  shared.shared_memory = true;
  add("step in shared memory", shared);
  add("step of one float", ScalarOf(options));
  return rows;
}

// All that shows what a job does against nothing of it. Spans of servers and of
// the chief are kept in both cases; span_benchmark has the cost of a span.
Rows Observed(const ComparisonOptions& options) {
  const auto row = [](const std::string& what, Metric metric,
                      const Candidate& plain, std::optional<Goal> goal) {
    Candidate observed = plain;
    observed.observed = true;
    return Row{"observed", what, metric, observed, plain, goal};
  };
  Candidate scalar = ScalarOf(options);
  scalar.servers = 1;
  return {
      row("page, metrics, summaries, spans / none", Metric::kStepMs,
          options.base, AtMost(1.02)),
      row("the same: mean step", Metric::kMeanStepMs, options.base,
          std::nullopt),
      row("the same of a step of one float", Metric::kStepMs, scalar,
          AtMost(1.05)),
      row("mean step of one float", Metric::kMeanStepMs, scalar, std::nullopt)};
}

struct Entry {
  Comparison comparison;
  std::function<Rows(const ComparisonOptions&)> rows;
};

// A copy of the variables beside each worker, against one server of all. Where
// mirrors are on other hosts, a worker shares memory with its own alone.
Rows Mirrored(const ComparisonOptions& options) {
  const auto mirrored = [](Candidate candidate, int workers, bool one_host) {
    candidate.workers = workers;
    candidate.servers = workers;
    candidate.job_text = "strategy { kind: MULTI_WORKER_MIRRORED }";
    candidate.shared_memory = true;
    candidate.shares_with_mirror_alone = !one_host;
    return candidate;
  };
  Candidate two_servers = options.base;
  two_servers.servers = 2;
  const Candidate wire = mirrored(options.base, 2, false);
  const Candidate scalar = ScalarOf(options);
  return {
      {"mirrored", "step, 2 workers: mirrors / one server", Metric::kStepMs,
       wire, options.base, AtMost(0.75)},
      {"mirrored", "mirrors / gloo's all-reduce and the update",
       Metric::kStepMs, wire, Plain("gloo", wire), AtMost(1.25)},
      {"mirrored", "mirrors on one host / the same", Metric::kStepMs,
       mirrored(options.base, 2, true), Plain("gloo", wire), std::nullopt},
      {"mirrored", "mirrors / two servers", Metric::kStepMs, wire, two_servers,
       std::nullopt},
      {"mirrored", "mirrors on one host / one server on the wire",
       Metric::kStepMs, mirrored(options.base, 2, true), options.base,
       AtMost(0.4)},
      {"mirrored", "CPU time of a step: mirrors / one server", Metric::kCpuMs,
       wire, options.base, std::nullopt},
      {"mirrored", "step, 4 workers / 2; 3 times the bytes in all",
       Metric::kStepMs, mirrored(options.base, 4, false), wire, std::nullopt},
      {"mirrored", "step, 8 workers / 2; 7 times the bytes in all",
       Metric::kStepMs, mirrored(options.base, 8, false), wire, std::nullopt},
      // By the formula, and at most a twentieth of headers beyond it.
      {"mirrored", "models sent by each of 2 workers; 2(n-1)/n is 1",
       Metric::kModelsSent, wire, std::nullopt, AtMost(1.05 * 1)},
      {"mirrored", "models sent by each of 4 workers; 2(n-1)/n is 1.5",
       Metric::kModelsSent, mirrored(options.base, 4, false), std::nullopt,
       AtMost(1.05 * 1.5)},
      {"mirrored", "models sent by each of 8 workers; 2(n-1)/n is 1.75",
       Metric::kModelsSent, mirrored(options.base, 8, false), std::nullopt,
       AtMost(1.05 * 1.75)},
      {"mirrored", "models sent to and by one server, for each worker; 2",
       Metric::kModelsSent, options.base, std::nullopt, std::nullopt},
      {"mirrored", "step of one float: mirrors / one server", Metric::kStepMs,
       mirrored(scalar, 2, false), scalar, std::nullopt}};
}

const std::vector<Entry>& Entries() {
  static const auto& entries = *new std::vector<Entry>{
      {{"tcp1", "1 worker against plain TCP"}, Tcp1},
      {{"tcp2", "--workers workers against plain TCP"}, Tcp2},
      {{"backup", "3 workers, one more than needed"}, Backup},
      {{"naive", "gRPC with one `bytes` field for the model"}, Naive},
      {{"resnet50", "161 tensors against one"}, ResNet50},
      {{"servers", "2 servers against 1"}, Servers},
      {{"scalar", "what a step costs apart from its bytes"}, Scalar},
      {{"cpu", "CPU time against plain TCP"}, Cpu},
      {{"memory", "what a server holds besides its state"}, Memory},
      {{"bf16", "gradients as bfloat16 on the wire"}, Bf16},
      {{"shared_memory", "workers on the server's machine"}, SharedMemory},
      {{"durable", "surviving the death of processes / not", false}, Durable},
      {{"tls", "certificates on each connection / none", false}, Tls},
      {{"mirrored", "a copy of the variables beside each worker / one server",
        false},
       Mirrored},
      {{"clipping", "the norm of the mean limited on servers / not", false},
       Clipping},
      {{"observed", "page, metrics, summaries and spans / none", false},
       Observed},
      {{"techniques", "without one technique each / with all", false},
       Techniques},
      {{"growth_workers", "1 to 8 workers, as many bytes in all", false},
       GrowthWorkers},
      {{"growth_sizes", "a hundredth to ten times the size", false},
       GrowthSizes}};
  return entries;
}

}  // namespace

const std::vector<Comparison>& AllComparisons() {
  static const auto& all = *[] {
    auto* comparisons = new std::vector<Comparison>;
    for (const Entry& entry : Entries()) {
      comparisons->push_back(entry.comparison);
    }
    return comparisons;
  }();
  return all;
}

absl::StatusOr<std::vector<Row>> MakeRows(const std::string& name,
                                          const ComparisonOptions& options) {
  for (const Entry& entry : Entries()) {
    if (entry.comparison.name == name) return entry.rows(options);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no comparison \"", name, "\"; see --help"));
}

}  // namespace lockstep::benchmark
