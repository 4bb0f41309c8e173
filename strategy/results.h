#ifndef LOCKSTEP_STRATEGY_RESULTS_H_
#define LOCKSTEP_STRATEGY_RESULTS_H_

#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strategy/values/distributed.h"

// Functions of users may return nothing, a Status, a value, or a StatusOr of
// one; the library sees a Status or a StatusOr.
namespace lockstep::strategy {

template <class R>
struct ResultOf {
  using Value = R;
  using Type = absl::StatusOr<R>;
};
template <>
struct ResultOf<void> {
  using Value = void;
  using Type = absl::Status;
};
template <>
struct ResultOf<absl::Status> : ResultOf<void> {};
template <class T>
struct ResultOf<absl::StatusOr<T>> : ResultOf<T> {};

// A function of this type, called with these arguments.
template <class F, class... A>
using ResultOfCall = ResultOf<std::decay_t<std::invoke_result_t<F&, A...>>>;

template <class F, class... A>
typename ResultOfCall<F, A...>::Type Call(F& fn, A&&... args) {
  if constexpr (std::is_void_v<std::invoke_result_t<F&, A...>>) {
    fn(std::forward<A>(args)...);
    return absl::OkStatus();
  } else {
    return fn(std::forward<A>(args)...);
  }
}

// The part of a result that a replica gets: its component of a wrapped value.
template <class T>
struct PartOf {
  using Type = absl::StatusOr<Component<T>>;
  static Type Take(const absl::StatusOr<T>& result, size_t replica) {
    if (!result.ok()) return result.status();
    return ComponentOf(*result, replica);
  }
};
template <>
struct PartOf<void> {
  using Type = absl::Status;
  static Type Take(const absl::Status& result, size_t) { return result; }
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_RESULTS_H_
