// Replays the sums, means and gathers that TensorFlow's strategies made of
// values that differ between replicas, bit by bit, and their refusals.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/collective/gather.h"
#include "common/collective/reduction.h"
#include "common/numeric/float16.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

double NumberOf(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  const std::string name = json.get<std::string>();
  const double infinity = std::numeric_limits<double>::infinity();
  return name == "inf"    ? infinity
         : name == "-inf" ? -infinity
                          : std::numeric_limits<double>::quiet_NaN();
}

template <typename T, typename Convert>
Value ValueAs(const Json& json, ElementType type, Convert convert) {
  std::vector<T> elements;
  for (const Json& number : json["data"]) elements.push_back(convert(number));
  return Value::Of(type, json["shape"].get<std::vector<int64_t>>(), elements);
}

Value ReadValue(const Json& json) {
  const ElementType type =
      ParseElementType(json["dtype"].get<std::string>()).value();
  switch (type) {
    case ElementType::kFloat16:
      return ValueAs<Float16>(json, type, [](const Json& number) {
        return ToFloat16(NumberOf(number));
      });
    case ElementType::kFloat32:
      return ValueAs<float>(json, type, [](const Json& number) {
        return static_cast<float>(NumberOf(number));
      });
    case ElementType::kInt32:
      return ValueAs<int32_t>(
          json, type, [](const Json& number) { return number.get<int32_t>(); });
    case ElementType::kInt64:
      return ValueAs<int64_t>(
          json, type, [](const Json& number) { return number.get<int64_t>(); });
    default:
      return ValueAs<double>(json, type, NumberOf);
  }
}

Leaf ReadLeaf(const Json& json) {
  if (json.contains("dtype")) return ReadValue(json);
  Slices slices;
  slices.indices = json["indices"].get<std::vector<int64_t>>();
  slices.values = ReadValue(json["values"]);
  if (!json["dense_shape"].is_null()) {
    slices.dense_shape = json["dense_shape"].get<std::vector<int64_t>>();
  }
  return slices;
}

bool IsLeaf(const Json& json) {
  return json.is_object() &&
         (json.contains("dtype") || json.contains("indices"));
}

// All leaves of a result: every worker has the same here.
void CollectLeaves(const Json& json, std::vector<Leaf>& leaves) {
  if (IsLeaf(json)) return leaves.push_back(ReadLeaf(json));
  if (!json.is_structured()) return;
  for (const Json& part : json) CollectLeaves(part, leaves);
}

// Bit for bit, but that any not-a-number equals any other.
bool SameBits(const Value& a, const Value& b) {
  if (a == b) return true;
  if (a.type() != b.type() || a.shape() != b.shape()) return false;
  const size_t item = SizeOf(a.type());
  const auto number = [item](const Value& value, size_t i) -> double {
    switch (item) {
      case 2:
        return ToFloat(value.Elements<Float16>()[i]);
      case 4:
        return value.Elements<float>()[i];
      default:
        return value.Elements<double>()[i];
    }
  };
  if (IsInteger(a.type())) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = std::memcmp(a.bytes().data() + i * item,
                                  b.bytes().data() + i * item, item) == 0;
    if (!same && !(std::isnan(number(a, i)) && std::isnan(number(b, i)))) {
      return false;
    }
  }
  return true;
}

bool SameBits(const Leaf& a, const Leaf& b) {
  if (a.index() != b.index()) return false;
  if (a.index() == 0) return SameBits(std::get<Value>(a), std::get<Value>(b));
  const Slices& one = std::get<Slices>(a);
  const Slices& other = std::get<Slices>(b);
  return one.indices == other.indices && one.dense_shape == other.dense_shape &&
         SameBits(one.values, other.values);
}

// TensorFlow's ring adds all_reduce() of MirroredStrategy, but int32, and all
// that several workers add.
SumOrder OrderOf(const std::string& kind, const std::string& op,
                 ElementType type) {
  if (kind == "MultiWorkerMirrored") return SumOrder::kRing;
  const bool ring =
      kind == "Mirrored" && op == "all_reduce" && type != ElementType::kInt32;
  return ring ? SumOrder::kRing : SumOrder::kRank;
}

absl::StatusOr<Value> ReduceAlong(ReduceOp op, SumOrder order,
                                  const std::vector<Value>& values,
                                  int64_t axis) {
  std::vector<Value> sums;
  double count = 0;
  for (const Value& value : values) {
    absl::StatusOr<Value> sum = SumAlong(value, axis);
    if (!sum.ok()) return sum.status();
    sums.push_back(*std::move(sum));
    const int64_t rank = static_cast<int64_t>(value.shape().size());
    count += static_cast<double>(value.shape()[axis < 0 ? axis + rank : axis]);
  }
  absl::StatusOr<Value> sum = Reduce(ReduceOp::kSum, order, sums);
  if (!sum.ok() || op == ReduceOp::kSum) return sum;
  return Mean(*sum, count);
}

absl::StatusOr<Leaf> ReduceAll(const std::string& kind, const Json& op,
                               const std::vector<Leaf>& leaves) {
  const absl::StatusOr<ReduceOp> reduce =
      ParseReduceOp(op["reduce_op"].get<std::string>());
  if (!reduce.ok()) return reduce.status();
  if (std::holds_alternative<Slices>(leaves.front())) {
    std::vector<Slices> slices;
    for (const Leaf& leaf : leaves) slices.push_back(std::get<Slices>(leaf));
    return ReduceSlices(*reduce, slices);
  }
  std::vector<Value> values;
  for (const Leaf& leaf : leaves) values.push_back(std::get<Value>(leaf));
  const SumOrder order = OrderOf(kind, op["op"], values.front().type());
  const bool along = op.contains("axis") && !op["axis"].is_null();
  return along ? ReduceAlong(*reduce, order, values, op["axis"].get<int64_t>())
               : Reduce(*reduce, order, values);
}

absl::StatusOr<Leaf> GatherAll(const std::string& kind, const Json& op,
                               const std::vector<Leaf>& leaves) {
  if (leaves.size() == 1 && std::holds_alternative<Slices>(leaves[0])) {
    return leaves[0];  // stays as it is
  }
  std::vector<Value> values;
  for (const Leaf& leaf : leaves) {
    if (std::holds_alternative<Value>(leaf)) {
      values.push_back(std::get<Value>(leaf));
      continue;
    }
    absl::StatusOr<Value> dense = ToDense(std::get<Slices>(leaf));
    if (!dense.ok()) return dense.status();
    values.push_back(*std::move(dense));
  }
  int64_t axis = op["axis"].get<int64_t>();
  // Only this kind counts from the end.
  if (kind == "CentralStorage" && axis < 0) {
    axis += static_cast<int64_t>(values.front().shape().size());
  }
  return Gather(values, axis);
}

// Whether this replay knows the operation. Operations on strategies, packs,
// structures and several axes are left out.
bool IsReplayed(const Json& op) {
  static const auto& names = *new std::map<std::string, bool>{
      {"all_reduce", true}, {"reduce", true},     {"reduce_to", true},
      {"gather", true},     {"all_gather", true},
  };
  if (names.count(op["op"].get<std::string>()) == 0) return false;
  const Json& value = op["value"];
  return value.is_object() && value.contains("per_replica") &&
         IsLeaf(value["per_replica"][0]) && op["status"].is_string() &&
         !op.value("graph", false) && !op.value("axis", Json()).is_array() &&
         op.value("reason", "") != "destination_is_a_list";
}

class StrategyValuesTest : public ::testing::Test {
 protected:
  void Replay(const Json& scenario, const Json& op) {
    const std::string where =
        absl::StrCat(scenario["name"].get<std::string>(), ", ", op.dump());
    const std::string kind = scenario["strategy"]["kind"];
    std::vector<Leaf> leaves;
    for (const Json& leaf : op["value"]["per_replica"]) {
      leaves.push_back(ReadLeaf(leaf));
    }
    const absl::StatusOr<Leaf> made =
        absl::StrContains(op["op"].get<std::string>(), "gather")
            ? GatherAll(kind, op, leaves)
            : ReduceAll(kind, op, leaves);
    if (op["status"] != "OK") {
      ++refused_;
      EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument)
          << where;
      return;
    }
    ASSERT_TRUE(made.ok()) << where << ": " << made.status();
    std::vector<Leaf> expected;
    CollectLeaves(op["result"], expected);
    ASSERT_FALSE(expected.empty()) << where;
    for (const Leaf& leaf : expected) {
      ASSERT_TRUE(SameBits(*made, leaf)) << where;
    }
    ++equal_;
  }

  int equal_ = 0;
  int refused_ = 0;
  std::map<std::string, int> left_out_;
};

TEST_F(StrategyValuesTest, ReductionsAndGathersHaveTensorFlowsBits) {
  std::ifstream file(LOCKSTEP_GOLDEN_DIR "/strategy_values.jsonl");
  for (std::string line; std::getline(file, line);) {
    const Json scenario = Json::parse(line);
    // A collective that fails breaks all later ones of its processes.
    bool broken = false;
    for (const Json& op : scenario["ops"]) {
      if (IsReplayed(op) && !broken) {
        broken = scenario.value("fatal", false) && op["status"] != "OK";
        Replay(scenario, op);
        if (HasFatalFailure()) return;
      } else {
        ++left_out_[op["op"].get<std::string>()];
      }
    }
  }

  std::cout << equal_ << " results are equal, " << refused_
            << " are refused as by TensorFlow; left out:";
  for (const auto& [op, count] : left_out_) {
    std::cout << " " << op << " " << count;
  }
  std::cout << "\n";
  EXPECT_GT(equal_, 800);
  EXPECT_GT(refused_, 60);
}

}  // namespace
}  // namespace lockstep
