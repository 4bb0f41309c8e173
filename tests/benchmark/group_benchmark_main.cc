// The all-reduce of a strategy's program over the workers of one host: values
// in shared memory, next to values that are sent. Members are threads, each
// with its own server and connections.

#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/collective/reduction.h"
#include "common/flags/flag_parser.h"
#include "deploy/cli/run/port_reservation.h"
#include "strategy/workers/network_group.h"

namespace lockstep::strategy {
namespace {

using Groups = std::vector<std::unique_ptr<NetworkGroup>>;

void ForEachMember(int members, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int r = 0; r < members; ++r) threads.emplace_back(work, r);
  for (std::thread& thread : threads) thread.join();
}

// Returns no group if a member could not join.
Groups Join(int members, bool shared) {
  std::vector<cli::PortReservation> ports;
  NetworkGroup::Options options;
  options.purpose = "benchmark";
  options.shared_memory = shared;
  for (int r = 0; r < members; ++r) {
    auto port = cli::PortReservation::Create();
    if (!port.ok()) return {};
    options.addresses.push_back(absl::StrCat("127.0.0.1:", port->port()));
    ports.push_back(*std::move(port));
  }
  Groups groups(static_cast<size_t>(members));
  ForEachMember(members, [&](int r) {
    NetworkGroup::Options own = options;
    own.rank = r;
    auto group = NetworkGroup::Join(own);
    if (group.ok()) groups[static_cast<size_t>(r)] = *std::move(group);
  });
  const bool all =
      std::all_of(groups.begin(), groups.end(),
                  [](const auto& group) { return group != nullptr; });
  return all ? std::move(groups) : Groups();
}

// Milliseconds of an exchange of `value` and the sum of what came; -1: failed.
double TimeOf(const Groups& groups, const Value& value) {
  std::vector<char> good(groups.size());
  const absl::Time began = absl::Now();
  ForEachMember(static_cast<int>(groups.size()), [&](int r) {
    const auto parcels =
        groups[static_cast<size_t>(r)]->Exchange("sum", {value});
    if (!parcels.ok()) return;
    std::vector<Value> values;
    for (const Parcel& parcel : *parcels) {
      values.push_back(std::get<Value>(parcel->front()));
    }
    good[static_cast<size_t>(r)] =
        Reduce(ReduceOp::kSum, SumOrder::kRank, values).ok() ? 1 : 0;
  });
  const double ms = absl::ToDoubleMilliseconds(absl::Now() - began);
  return std::find(good.begin(), good.end(), 0) == good.end() ? ms : -1;
}

double MedianOf(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

int Main(int members, int64_t kibibytes, int rounds) {
  const Groups shared = Join(members, true);
  const Groups sent = Join(members, false);
  const auto value = Value::Zeros(ElementType::kFloat32, {kibibytes * 256});
  if (shared.empty() || sent.empty() || !value.ok()) {
    std::cerr << "the members did not join\n";
    return 1;
  }
  std::vector<double> shared_ms;
  std::vector<double> sent_ms;
  std::vector<double> ratios;
  // The first round warms up: memory is allocated, and files are mapped.
  for (int i = -1; i < rounds; ++i) {
    const double in_memory = TimeOf(shared, *value);
    const double over_wire = TimeOf(sent, *value);
    if (in_memory < 0 || over_wire < 0) {
      std::cerr << "an exchange failed\n";
      return 1;
    }
    if (i < 0) continue;
    shared_ms.push_back(in_memory);
    sent_ms.push_back(over_wire);
    ratios.push_back(in_memory / over_wire);
  }
  if (shared[0]->mapped_members().empty()) {
    std::cerr << "the members share no memory\n";
    return 1;
  }
  std::cout << "{\"members\": " << members << ", \"kibibytes\": " << kibibytes
            << ", \"rounds\": " << rounds
            << ", \"milliseconds\": {\"shared\": " << MedianOf(shared_ms)
            << ", \"sent\": " << MedianOf(sent_ms)
            << "}, \"ratio\": " << MedianOf(ratios) << "}\n";
  return 0;
}

}  // namespace
}  // namespace lockstep::strategy

int main(int argc, char** argv) {
  int members = 2;
  int64_t kibibytes = 100 << 10;
  int rounds = 9;
  lockstep::FlagParser parser(
      "group_benchmark",
      "Times the all-reduce of one value over workers of this host, in shared "
      "memory and over connections, in turn.");
  parser.app()
      .add_option("--members", members, "Workers.")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  parser.app()
      .add_option("--kibibytes", kibibytes, "The size of the value.")
      ->check(CLI::Range(1, 4 << 20))
      ->capture_default_str();
  parser.app()
      .add_option("--rounds", rounds, "Repetitions.")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  if (auto code = parser.Parse(argc, argv, std::cout, std::cerr)) return *code;
  return lockstep::strategy::Main(members, kibibytes, rounds);
}
