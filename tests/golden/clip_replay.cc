#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/golden/replay.h"
#include "worker/loop/gradient_clipping.h"

namespace lockstep::golden {
namespace {

const Json& ValuesOf(const Json& entry) {
  return entry.contains("dense") ? entry.at("dense") : entry.at("values");
}

// The gradients that are not None, with their indices in the list.
struct Entries {
  std::vector<size_t> places;
  std::vector<std::vector<std::byte>> values;
};

Entries ReadEntries(DType dtype, const Json& list) {
  Entries entries;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_null()) continue;
    entries.places.push_back(i);
    entries.values.push_back(ReadTensor(dtype, ValuesOf(list[i])).values);
  }
  return entries;
}

double Norm(DType dtype, const Entries& entries) {
  std::vector<absl::Span<const std::byte>> spans(entries.values.begin(),
                                                 entries.values.end());
  return worker::GlobalNorm(dtype, spans);
}

// TensorFlow adds gradients of many elements in another order, a measured
// difference of 2 units in the last place; twice that is allowed.
constexpr double kUlpsOfNorm = 4;

void ExpectNorm(absl::string_view what, DType dtype, double expected,
                double got, Report& report) {
  if (Near(dtype, {expected}, {got}, {expected}, kUlpsOfNorm)) return;
  report.Add(what, Text({expected}), Text({got}));
}

}  // namespace

void ReplayClip(const Json& scenario, Report& report) {
  const DType dtype = ReadDType(scenario);
  Entries entries = ReadEntries(dtype, scenario.at("entries"));
  const double own_norm = Norm(dtype, entries);
  const Json& use_norm = scenario.at("use_norm");
  // Within this tolerance, a different norm would make every result differ.
  const double norm = ReadNumber(scenario.at("norm"));
  std::vector<absl::Span<std::byte>> spans;
  for (auto& values : entries.values) spans.push_back(absl::MakeSpan(values));

  worker::ClipByGlobalNorm(dtype, ReadNumber(scenario.at("clip_norm")), norm,
                           spans);

  report.Expect("status", scenario.at("status"), "OK");
  report.Expect("status of global_norm",
                scenario.at("global_norm").at("status"), "OK");
  ExpectNorm("global_norm", dtype,
             ReadNumber(scenario.at("global_norm").at("value")), own_norm,
             report);
  ExpectNorm(
      "norm", dtype, norm,
      use_norm.is_null() ? own_norm : RoundTo(dtype, ReadNumber(use_norm)),
      report);
  const Json& results = scenario.at("results");
  const Entries expected = ReadEntries(dtype, results);
  report.Expect("number of gradients", expected.places.size(),
                entries.places.size());
  for (size_t i = 0; i < entries.places.size(); ++i) {
    const size_t place = entries.places[i];
    report.ExpectSame(absl::StrCat("gradient ", place), dtype,
                      ReadTensor(dtype, ValuesOf(results.at(place))).values,
                      entries.values[i], Zeros::kEqual);
  }
}

}  // namespace lockstep::golden
