// A function that may not be called in a context does not compile there.

#include <concepts>

#include "gtest/gtest.h"
#include "strategy/strategy.h"

namespace lockstep::strategy {
namespace {

struct Merged {
  absl::Status operator()(Cross&) const { return absl::OkStatus(); }
};
struct RunOnce {
  absl::Status operator()(Replica&) const { return absl::OkStatus(); }
};
struct Placed {
  absl::Status operator()(Place&) const { return absl::OkStatus(); }
};

// What contexts have. Each of these is true for some context, so that a
// mistake in a requirement does not pass as a refusal.
template <class C>
concept Reads = requires(C& c, const Variable& v) {
  c.Read(v);
};
template <class C>
concept Reduces = requires(C& c, const PerReplica<Value>& x) {
  c.Reduce(ReduceOp::kSum, x);
};
template <class C>
concept ReducesTo = requires(C& c, const PerReplica<Value>& x) {
  c.ReduceTo(ReduceOp::kSum, x, EveryReplica{});
};
template <class C>
concept Gathers = requires(C& c, const PerReplica<Value>& x) {
  c.Gather(x, 0);
};
template <class C>
concept AllReducesItsOwn = requires(C& c, const Value& x) {
  { c.AllReduce(ReduceOp::kSum, x) } -> std::same_as<absl::StatusOr<Value>>;
};
template <class C>
concept Merges = requires(C& c) {
  c.Merge(Merged{});
};
template <class C>
concept Runs = requires(C& c) {
  c.Run(RunOnce{});
};
template <class C>
concept Broadcasts = requires(C& c, const Value& x) {
  c.BroadcastTo(x, EveryReplica{});
};
template <class C>
concept UpdatesNonSlots = requires(C& c, const Placement& p) {
  c.UpdateNonSlot(p, Placed{});
};
template <class C>
concept AssignsPerReplica = requires(C& c, const Variable& v,
                                     const PerReplica<Value>& x) {
  c.Assign(v, x);
};
template <class C>
concept Scatters = requires(C& c, const Variable& v, const Slices& s) {
  c.Scatter(ScatterOp::kAdd, v, s);
};
template <class C>
concept WritesItsCopy = requires(C& c, const Value& x) {
  c.Assign(x);
};

// A replica.
static_assert(Reads<Replica> && AllReducesItsOwn<Replica> && Merges<Replica> &&
              Scatters<Replica>);
static_assert(!Reduces<Replica> && !ReducesTo<Replica> && !Gathers<Replica> &&
              !Runs<Replica> && !Broadcasts<Replica> &&
              !UpdatesNonSlots<Replica> && !AssignsPerReplica<Replica> &&
              !WritesItsCopy<Replica>);

// Across replicas.
static_assert(Reads<Cross> && Reduces<Cross> && ReducesTo<Cross> &&
              Gathers<Cross> && Runs<Cross> && Broadcasts<Cross> &&
              UpdatesNonSlots<Cross> && AssignsPerReplica<Cross>);
static_assert(!Merges<Cross> && !Scatters<Cross> && !AllReducesItsOwn<Cross> &&
              !WritesItsCopy<Cross>);

// A copy of a variable.
static_assert(Reads<Copy> && WritesItsCopy<Copy>);
static_assert(!Reduces<Copy> && !ReducesTo<Copy> && !Gathers<Copy> &&
              !Runs<Copy> && !Merges<Copy> && !Broadcasts<Copy> &&
              !AssignsPerReplica<Copy> && !Scatters<Copy> &&
              !AllReducesItsOwn<Copy>);
static_assert(!WritesItsCopy<Place>);

// A function gets the context of its place, and the components of arguments.
struct InReplica {
  void operator()(Replica&, const Value&) const {}
};
struct Across {
  void operator()(Cross&) const {}
};
struct OnCopy {
  void operator()(Copy&, const Value&) const {}
};
template <class F, class... A>
concept MayRun = requires(Strategy& s, F f, const A&... a) {
  s.Run(f, a...);
};
template <class F>
concept MayGoAcross = requires(Strategy& s, F f) {
  s.Across(f);
};
template <class F, class... A>
concept MayUpdate = requires(Cross& c, const Variable& v, F f, const A&... a) {
  c.Update(v, f, a...);
};
template <class F>
concept MayMerge = requires(Replica& r, F f) {
  r.Merge(f);
};

static_assert(MayRun<InReplica, PerReplica<Value>>);
static_assert(MayRun<InReplica, Value>);
static_assert(!MayRun<InReplica, PerReplica<int>>);
static_assert(!MayRun<InReplica>);
static_assert(!MayRun<Across>);
static_assert(MayGoAcross<Across>);
static_assert(!MayGoAcross<InReplica>);
static_assert(MayUpdate<OnCopy, AtVariable<Value>>);
static_assert(MayUpdate<OnCopy, Mirrored<Value>>);
static_assert(!MayUpdate<InReplica, AtVariable<Value>>);
static_assert(MayMerge<Across>);
static_assert(!MayMerge<OnCopy>);

// In a replica, an output of a step must be reduced.
template <class C, class... A>
concept MayOutput = requires(StepContext& s, C& c, const A&... a) {
  s.Output(c, "name", a...);
};
static_assert(MayOutput<Cross, PerReplica<Value>>);
static_assert(!MayOutput<Replica, Value>);
static_assert(MayOutput<Replica, Value, ReduceOp>);

TEST(ContextsTest, TheCompilerHasCheckedWhatMayBeCalledWhere) {
  // At run time, a captured strategy is refused in a replica.
  auto strategy = Strategy::Make({Kind::kMirrored, 2, {}}).value();
  EXPECT_EQ(
      strategy
          ->Run([&](Replica&) {
            return strategy->Across([](Cross&) { return absl::OkStatus(); });
          })
          .code(),
      absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace lockstep::strategy
