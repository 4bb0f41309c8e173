#ifndef LOCKSTEP_STRATEGY_RESULTS_H_
#define LOCKSTEP_STRATEGY_RESULTS_H_

#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strategy/values/distributed.h"

// A program's function may return nothing, a Status, an R or a StatusOr<R>.
// These helpers turn the first two into a Status and the others into a
// StatusOr<R>.
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

// ResultOf for the type that a call of an F with these arguments returns.
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

// The part of a result that Merge() returns to one of `replicas`: its component
// of a wrapped value, or all of any other value.
//
//   kInvalidArgument  a PerReplica or an AtVariable lacks a component for some
//                     replica
template <class T>
struct PartOf {
  using Type = absl::StatusOr<Component<T>>;
  static Type Take(const absl::StatusOr<T>& result, size_t replica,
                   size_t replicas) {
    if (!result.ok()) return result.status();
    if constexpr (kIsWrapped<T> && requires { result->local(); }) {
      if (result->local().size() < replicas) {
        return absl::InvalidArgumentError(
            "the result of a merge has fewer components than the worker has "
            "replicas");
      }
    } else if constexpr (kIsWrapped<T> && requires { result->copies(); }) {
      if (result->copies().size() != 1 && result->copies().size() < replicas) {
        return absl::InvalidArgumentError(
            "the result of a merge has fewer copies than the worker has "
            "replicas");
      }
    }
    return ComponentOf(*result, replica);
  }
};
template <>
struct PartOf<void> {
  using Type = absl::Status;
  static Type Take(const absl::Status& result, size_t, size_t) {
    return result;
  }
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_RESULTS_H_
