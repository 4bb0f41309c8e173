#ifndef LOCKSTEP_STRATEGY_VALUES_DISTRIBUTED_H_
#define LOCKSTEP_STRATEGY_VALUES_DISTRIBUTED_H_

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/collective/value.h"

// The forms in which the replicas of a worker hold a value. Each form is a type
// of its own, so that the compiler checks where a value may be used.
namespace lockstep::strategy {

// The names of the devices that hold one copy each of a value, e.g. "cpu:0".
struct Placement {
  std::vector<std::string> devices;

  bool operator==(const Placement&) const = default;
};

// The storage of components. At() and local() return references to components,
// which std::vector<bool> does not have.
template <class T>
using Components =
    std::conditional_t<std::is_same_v<T, bool>, absl::InlinedVector<bool, 8>,
                       std::vector<T>>;
template <class T>
Components<T> ComponentsOf(std::vector<T> values) {
  if constexpr (std::is_same_v<T, bool>) {
    return {values.begin(), values.end()};
  } else {
    return values;
  }
}

// PerReplica has one value for each replica of this worker; they may differ.
//
// Threads: as std::vector<int>. The same holds for all types of this file.
template <class T>
class PerReplica {
 public:
  using Element = T;
  PerReplica(std::vector<T> local, int first_replica)
      : local_(ComponentsOf(std::move(local))), first_replica_(first_replica) {}

  // Element i belongs to replica first_replica() + i.
  absl::Span<const T> local() const& { return local_; }
  absl::Span<const T> local() const&& = delete;  // would outlive its elements
  int first_replica() const { return first_replica_; }

  // Component `i`, counted among the replicas of this worker.
  const T& At(size_t i) const { return local_[i]; }

  bool operator==(const PerReplica&) const = default;

 private:
  Components<T> local_;
  int first_replica_ = 0;
};

// Mirrored is a value that is equal on all replicas.
template <class T>
class Mirrored {
 public:
  using Element = T;
  explicit Mirrored(T value) : value_(std::move(value)) {}

  const T& value() const { return value_; }
  const T& At(size_t) const { return value_; }

  bool operator==(const Mirrored&) const = default;

 private:
  T value_;
};

// AtVariable is a value with a copy on each device of a placement: where a
// variable has its copies, or where the state of an optimizer lies.
template <class T>
class AtVariable {
 public:
  using Element = T;
  // All copies equal `value`.
  AtVariable(Placement placement, T value)
      : placement_(std::move(placement)), copies_{std::move(value)} {}
  // `copies` must have one element for each device of the placement.
  AtVariable(Placement placement, std::vector<T> copies)
      : placement_(std::move(placement)),
        copies_(ComponentsOf(std::move(copies))) {}

  const Placement& placement() const { return placement_; }
  size_t size() const { return placement_.devices.size(); }
  // The copy on device `i` of the placement.
  const T& At(size_t i) const { return copies_[copies_.size() == 1 ? 0 : i]; }
  // One element for each device, or a single one that all copies equal.
  absl::Span<const T> copies() const& { return copies_; }
  absl::Span<const T> copies() const&& = delete;  // would outlive its elements

  bool operator==(const AtVariable&) const = default;

 private:
  Placement placement_;
  Components<T> copies_;
};

template <class T>
inline constexpr bool kIsWrapped = false;
template <class T>
inline constexpr bool kIsWrapped<PerReplica<T>> = true;
template <class T>
inline constexpr bool kIsWrapped<Mirrored<T>> = true;
template <class T>
inline constexpr bool kIsWrapped<AtVariable<T>> = true;

// Returns the component of a wrapped value for local replica or copy `i`; any
// other value unchanged.
template <class T>
const auto& ComponentOf(const T& value, size_t i) {
  if constexpr (kIsWrapped<T>) {
    return value.At(i);
  } else {
    return value;
  }
}
template <class T>
using Component = std::decay_t<decltype(ComponentOf(std::declval<T>(), 0))>;

// Distributed is a tensor in one of the forms that can be reduced. kMirrored
// also stands for an AtVariable.
struct Distributed {
  enum class Form { kPerReplica, kMirrored, kPlain };

  Form form = Form::kPlain;
  // kPerReplica: one for each local replica; else one, but see ToCopies().
  std::vector<Leaf> local;
  // The call that the value belongs to, such as "Assign(\"w\")", which workers
  // compare; empty: they compare its type and shape alone.
  std::string label = {};
};

// A tensor, or one in any wrapping.
template <class T>
concept Reducible = std::is_constructible_v < Leaf,
        const Component<T>
& > ;

template <Reducible T>
Distributed ToDistributed(const T& value) {
  return {Distributed::Form::kPlain, {Leaf(value)}};
}
template <Reducible T>
Distributed ToDistributed(const PerReplica<T>& value) {
  return {Distributed::Form::kPerReplica,
          {value.local().begin(), value.local().end()}};
}
template <Reducible T>
Distributed ToDistributed(const Mirrored<T>& value) {
  return {Distributed::Form::kMirrored, {Leaf(value.value())}};
}
template <Reducible T>
Distributed ToDistributed(const AtVariable<T>& value) {
  return {Distributed::Form::kMirrored, {Leaf(value.At(0))}};
}

// Returns what is to be written to the copies of a variable: as
// ToDistributed(), but an AtVariable whose copies differ has all of them.
template <Reducible T>
Distributed ToCopies(const T& value) {
  return ToDistributed(value);
}
template <Reducible T>
Distributed ToCopies(const AtVariable<T>& value) {
  return {Distributed::Form::kMirrored,
          {value.copies().begin(), value.copies().end()}};
}

// Returns `leaf` as a T, which it must hold: the reduction of a Value is a
// Value, and that of Slices is Slices.
template <class T>
T FromLeaf(Leaf leaf) {
  if constexpr (std::is_same_v<T, Leaf>) {
    return leaf;
  } else {
    return std::get<T>(std::move(leaf));
  }
}

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_VALUES_DISTRIBUTED_H_
