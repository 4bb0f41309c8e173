#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "chief/plan/partitioner.h"
#include "tests/golden/replay.h"

namespace lockstep::golden {
namespace {

// Returns the size that TensorFlow gives its types, in bytes; 0 for "string".
int64_t TypeSize(const std::string& dtype) {
  static const auto& sizes = *new std::map<std::string, int64_t>{
      {"bool", 1},    {"int8", 1},      {"uint8", 1},       {"int16", 2},
      {"uint16", 2},  {"float16", 2},   {"bfloat16", 2},    {"int32", 4},
      {"uint32", 4},  {"float32", 4},   {"int64", 8},       {"uint64", 8},
      {"float64", 8}, {"complex64", 8}, {"complex128", 16}, {"string", 0}};
  const auto size = sizes.find(dtype);
  if (size == sizes.end()) {
    throw BadTrace(absl::StrCat("unknown dtype \"", dtype, "\""));
  }
  return size->second;
}

int64_t IntOr(const Json& arguments, const char* name, int64_t otherwise) {
  const auto argument = arguments.find(name);
  if (argument == arguments.end() || argument->is_null()) return otherwise;
  return ReadInt(*argument);
}

chief::PartitionInput ReadInput(const Json& scenario) {
  const Json& arguments = scenario.at("arguments");
  const int64_t of_string = IntOr(arguments, "bytes_per_string_element", 16);
  const int64_t size = TypeSize(scenario.at("dtype"));
  chief::PartitionInput input;
  input.shape = ReadInts(scenario.at("shape"));
  input.axis = IntOr(arguments, "axis", 0);
  input.element_size = size > 0 ? size : of_string;
  // TensorFlow refuses that size for other types, too.
  if (scenario.at("partitioner") == "variable_axis_size" && of_string < 1) {
    input.element_size = of_string;
  }
  return input;
}

absl::StatusOr<chief::Partition> MakePartition(const Json& scenario) {
  const std::string partitioner = scenario.at("partitioner");
  const Json& arguments = scenario.at("arguments");
  const chief::PartitionInput input = ReadInput(scenario);
  if (partitioner == "fixed_size") {
    return chief::FixedSizePartition(input,
                                     ReadInt(arguments.at("num_shards")));
  }
  if (partitioner == "variable_axis_size") {
    return chief::AxisSizePartition(input,
                                    ReadInt(arguments.at("max_shard_bytes")),
                                    IntOr(arguments, "max_shards", 0));
  }
  if (partitioner == "min_max") {
    return chief::MinMaxPartition(
        input, IntOr(arguments, "max_partitions", 1),
        IntOr(arguments, "min_slice_size", 256 << 10));
  }
  if (partitioner == "slicing") return ReadInts(arguments.at("slicing"));
  throw BadTrace(absl::StrCat("unknown partitioner \"", partitioner, "\""));
}

void CompareParts(const Json& variable,
                  const std::vector<chief::SlicePart>& parts, Report& report) {
  const Json& recorded = variable.at("parts");
  if (!report.Expect("number of parts", recorded.size(), parts.size())) return;
  const std::string name = variable.at("full_name");
  for (size_t i = 0; i < parts.size(); ++i) {
    report.Expect("name of a part", recorded[i].at("name"),
                  chief::PartName(name, i));
    report.Expect("offset", ReadInts(recorded[i].at("offset")),
                  parts[i].offset);
    report.Expect("length", ReadInts(recorded[i].at("length")),
                  parts[i].length);
  }
}

}  // namespace

void ReplayPartition(const Json& scenario, Report& report) {
  const absl::StatusOr<chief::Partition> partition = MakePartition(scenario);
  const std::vector<int64_t> shape = ReadInts(scenario.at("shape"));
  const bool slicing = scenario.at("partitioner") == "slicing";
  absl::Status outer = partition.status();
  const absl::StatusOr<std::vector<chief::SlicePart>> parts =
      partition.ok() ? chief::CutVariable(shape, *partition)
                     : absl::StatusOr<std::vector<chief::SlicePart>>(outer);
  if (slicing) outer = parts.status();

  const bool same =
      report.Expect("status", scenario.at("status"), StatusName(outer));
  if (!same || !outer.ok()) return;
  if (!slicing) {
    report.Expect("partitions", ReadInts(scenario.at("partitions")),
                  *partition);
  }
  const auto variable = scenario.find("variable");
  if (variable == scenario.end() || variable->is_null()) return;
  if (variable->contains("status") &&
      (!report.Expect("status of the variable", variable->at("status"),
                      StatusName(parts.status())) ||
       !parts.ok())) {
    return;
  }
  report.Expect("full_shape", ReadInts(variable->at("full_shape")), shape);
  CompareParts(*variable, *parts, report);
}

}  // namespace lockstep::golden
