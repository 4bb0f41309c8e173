#ifndef LOCKSTEP_TESTS_GOLDEN_STRATEGY_STRATEGY_JSON_H_
#define LOCKSTEP_TESTS_GOLDEN_STRATEGY_STRATEGY_JSON_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/collective/value.h"
#include "tests/golden/trace.h"

// Values in the traces of distribution strategies. Functions throw as those of
// trace.h do.
namespace lockstep::golden {

struct NodePart;

// Node is a value of one replica: a tensor or slices, the name of a variable,
// any other object of Python, or a structure of these.
struct Node {
  enum class Kind { kNull, kLeaf, kVariable, kPython, kList, kTuple, kDict };

  Kind kind = Kind::kNull;
  Leaf leaf;
  Json other;                   // the name or the object
  std::vector<NodePart> parts;  // of a structure; keys of a dict, sorted

  static Node Of(Leaf leaf);
  static Node Of(Kind kind, std::vector<NodePart> parts);
};

struct NodePart {
  std::string key;
  Node value;
};

// The place of a replica in a scenario.
struct Seat {
  int worker = 0;
  int local = 0;     // among the replicas of the worker
  int replicas = 1;  // of each worker
};

Value ReadValue(const Json& json);
Leaf ReadLeaf(const Json& json);
bool IsLeaf(const Json& json);

// The value that goes into an operation, as the replica sees it.
Node ReadNode(const Json& in, const Seat& seat);

// Whether a value that goes in is, or contains, an entry of this form:
// "python", "variable", "per_replica".
bool Contains(const Json& in, const std::string& form);

// Calls `visit` for each leaf, in order.
void ForEachLeaf(Node& node, const std::function<void(Leaf&)>& visit);

// A form in which values are equal if all bits are, but that any not-a-number
// equals any other.
Json Canonical(const Leaf& leaf);
Json Canonical(const Node& node);
// The part of a recorded result that belongs to local replica or copy `i`.
Json CanonicalPart(const Json& recorded, size_t i);
// The number of replicas or copies that a recorded result tells apart; 1 if it
// does not.
size_t CountParts(const Json& recorded);

// The flat numbers of a copy of a variable like `like`.
Json CanonicalNumbers(const Json& numbers, const Value& like);

// A recorded result or state of one worker.
const Json& OfWorker(const Json& recorded, int worker);

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_STRATEGY_STRATEGY_JSON_H_
