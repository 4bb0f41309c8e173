#include "tests/golden/strategy/strategy_json.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "common/numeric/float16.h"

namespace lockstep::golden {
namespace {

template <typename T, typename Convert>
Value ValueAs(const Json& data, std::vector<int64_t> shape, ElementType type,
              Convert convert) {
  std::vector<T> elements;
  for (const Json& number : data) elements.push_back(convert(number));
  size_t count = 1;
  for (const int64_t dim : shape) {
    if (dim < 0 || dim > (1 << 20)) throw BadTrace("a shape is out of range");
    count *= static_cast<size_t>(dim);
    if (count > (1u << 24)) throw BadTrace("a shape is out of range");
  }
  if (elements.size() != count) {
    throw BadTrace("a tensor has not as many elements as its shape");
  }
  return Value::Of(type, std::move(shape), elements);
}

Value MakeValue(const Json& data, std::vector<int64_t> shape,
                ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
      return ValueAs<Float16>(
          data, std::move(shape), type,
          [](const Json& number) { return ToFloat16(ReadNumber(number)); });
    case ElementType::kFloat32:
      return ValueAs<float>(data, std::move(shape), type,
                            [](const Json& number) {
                              return static_cast<float>(ReadNumber(number));
                            });
    case ElementType::kInt32:
      return ValueAs<int32_t>(data, std::move(shape), type,
                              [](const Json& number) {
                                return static_cast<int32_t>(ReadInt(number));
                              });
    case ElementType::kInt64:
      return ValueAs<int64_t>(data, std::move(shape), type, ReadInt);
    case ElementType::kFloat64:
      return ValueAs<double>(data, std::move(shape), type, ReadNumber);
    default:
      throw BadTrace("there are no traces of " + std::string(NameOf(type)));
  }
}

template <typename Bits, typename T, typename IsNan>
Json BitsOf(const Value& value, IsNan is_nan) {
  Json bits = Json::array();
  for (const T element : value.Elements<T>()) {
    Bits raw;
    std::memcpy(&raw, &element, sizeof(raw));
    bits.push_back(is_nan(element) ? Json("nan") : Json(raw));
  }
  return bits;
}

Json BitsOf(const Value& value) {
  switch (value.type()) {
    case ElementType::kFloat16:
      return BitsOf<uint16_t, Float16>(
          value, [](Float16 x) { return std::isnan(ToFloat(x)); });
    case ElementType::kFloat32:
      return BitsOf<uint32_t, float>(value,
                                     [](float x) { return std::isnan(x); });
    case ElementType::kFloat64:
      return BitsOf<uint64_t, double>(value,
                                      [](double x) { return std::isnan(x); });
    case ElementType::kInt32:
      return BitsOf<uint32_t, int32_t>(value, [](int32_t) { return false; });
    default:
      return BitsOf<uint64_t, int64_t>(value, [](int64_t) { return false; });
  }
}

Json Canonical(const Value& value) {
  return {{"dtype", std::string(NameOf(value.type()))},
          {"shape", value.shape()},
          {"bits", BitsOf(value)}};
}

Node::Kind StructureOf(const Json& json) {
  if (!json.is_object()) return Node::Kind::kNull;
  return json.contains("list")    ? Node::Kind::kList
         : json.contains("tuple") ? Node::Kind::kTuple
         : json.contains("dict")  ? Node::Kind::kDict
                                  : Node::Kind::kNull;
}

const char* NameOfStructure(Node::Kind kind) {
  return kind == Node::Kind::kList    ? "list"
         : kind == Node::Kind::kTuple ? "tuple"
                                      : "dict";
}

Node ReadStructure(const Json& in, Node::Kind kind, const Seat& seat) {
  Node node = Node::Of(kind, {});
  for (const auto& [key, part] : in.at(NameOfStructure(kind)).items()) {
    node.parts.push_back({key, ReadNode(part, seat)});
  }
  return node;
}

}  // namespace

Node Node::Of(Leaf leaf) {
  Node node;
  node.kind = Kind::kLeaf;
  node.leaf = std::move(leaf);
  return node;
}

Node Node::Of(Kind kind, std::vector<NodePart> parts) {
  Node node;
  node.kind = kind;
  node.parts = std::move(parts);
  return node;
}

bool IsLeaf(const Json& json) {
  return json.is_object() &&
         (json.contains("dtype") || json.contains("indices"));
}

Value ReadValue(const Json& json) {
  const absl::StatusOr<ElementType> type =
      ParseElementType(json.at("dtype").get<std::string>());
  if (!type.ok()) throw BadTrace(std::string(type.status().message()));
  return MakeValue(json.at("data"),
                   json.at("shape").get<std::vector<int64_t>>(), *type);
}

Leaf ReadLeaf(const Json& json) {
  if (json.contains("dtype")) return ReadValue(json);
  Slices slices;
  slices.indices = ReadInts(json.at("indices"));
  slices.values = ReadValue(json.at("values"));
  if (slices.values.shape().empty() ||
      slices.values.shape()[0] != static_cast<int64_t>(slices.indices.size())) {
    throw BadTrace("slices have not one row per index");
  }
  if (!json.at("dense_shape").is_null()) {
    slices.dense_shape = ReadInts(json.at("dense_shape"));
  }
  return slices;
}

Node ReadNode(const Json& in, const Seat& seat) {
  if (IsLeaf(in)) return Node::Of(ReadLeaf(in));
  if (const Node::Kind kind = StructureOf(in); kind != Node::Kind::kNull) {
    return ReadStructure(in, kind, seat);
  }
  if (in.contains("per_replica")) {
    const auto place =
        static_cast<size_t>(seat.worker * seat.replicas + seat.local);
    return ReadNode(in.at("per_replica").at(place), seat);
  }
  if (in.contains("per_worker")) {
    return ReadNode(in.at("per_worker").at(static_cast<size_t>(seat.worker)),
                    seat);
  }
  for (const char* form : {"mirrored", "tensor", "numpy"}) {
    if (in.contains(form)) return ReadNode(in.at(form), seat);
  }
  Node node;
  node.kind =
      in.contains("variable") ? Node::Kind::kVariable : Node::Kind::kPython;
  node.other = in.contains("variable") ? in.at("variable") : in.at("python");
  return node;
}

bool Contains(const Json& in, const std::string& form) {
  if (!in.is_structured()) return false;
  if (in.is_object() && in.contains(form)) return true;
  for (const Json& part : in) {
    if (Contains(part, form)) return true;
  }
  return false;
}

void ForEachLeaf(Node& node, const std::function<void(Leaf&)>& visit) {
  if (node.kind == Node::Kind::kLeaf) visit(node.leaf);
  for (auto& [key, part] : node.parts) ForEachLeaf(part, visit);
}

Json Canonical(const Leaf& leaf) {
  if (const Value* value = std::get_if<Value>(&leaf)) return Canonical(*value);
  const Slices& slices = std::get<Slices>(leaf);
  return {
      {"indices", slices.indices},
      {"values", Canonical(slices.values)},
      {"dense_shape",
       slices.dense_shape.has_value() ? Json(*slices.dense_shape) : Json()}};
}

Json Canonical(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return nullptr;
    case Node::Kind::kLeaf:
      return Canonical(node.leaf);
    case Node::Kind::kVariable:
      return {{"variable", node.other}};
    case Node::Kind::kPython:
      return {{"python", node.other}};
    case Node::Kind::kDict: {
      Json parts = Json::object();
      for (const auto& [key, part] : node.parts) parts[key] = Canonical(part);
      return {{"dict", parts}};
    }
    case Node::Kind::kList:
    case Node::Kind::kTuple:
      break;
  }
  Json parts = Json::array();
  for (const auto& [key, part] : node.parts) parts.push_back(Canonical(part));
  return {{NameOfStructure(node.kind), parts}};
}

Json CanonicalPart(const Json& recorded, size_t i) {
  if (IsLeaf(recorded)) return Canonical(ReadLeaf(recorded));
  if (!recorded.is_structured()) return recorded;
  if (recorded.is_object()) {
    for (const char* form : {"per_replica", "mirrored"}) {
      if (!recorded.contains(form)) continue;
      const bool all = recorded.contains("times");
      return CanonicalPart(recorded.at(form).at(all ? 0 : i), i);
    }
    if (recorded.contains("variable") && !recorded.contains("copies")) {
      return {{"variable", recorded.at("variable")}};
    }
  }
  Json made = recorded;
  for (Json& part : made) part = CanonicalPart(Json(part), i);
  return made;
}

size_t CountParts(const Json& recorded) {
  if (!recorded.is_structured() || IsLeaf(recorded)) return 1;
  if (recorded.is_object()) {
    for (const char* form : {"per_replica", "mirrored"}) {
      if (!recorded.contains(form)) continue;
      return recorded.contains("times")
                 ? static_cast<size_t>(ReadInt(recorded.at("times")))
                 : recorded.at(form).size();
    }
  }
  size_t most = 1;
  for (const Json& part : recorded) most = std::max(most, CountParts(part));
  return most;
}

Json CanonicalNumbers(const Json& numbers, const Value& like) {
  return Canonical(MakeValue(numbers, like.shape(), like.type()));
}

const Json& OfWorker(const Json& recorded, int worker) {
  if (recorded.is_object() && recorded.contains("all_workers")) {
    return recorded.at("all_workers");
  }
  return recorded.at(static_cast<size_t>(worker));
}

}  // namespace lockstep::golden
