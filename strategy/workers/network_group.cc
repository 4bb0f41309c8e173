#include "strategy/workers/network_group.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/steady_deadline.h"
#include "common/process/process.h"
#include "common/rpc/connection_advice.h"
#include "strategy/workers/parcel_codec.h"

namespace lockstep::strategy {
namespace {

// Lets answers that are on their way when the group ends reach their callers.
constexpr absl::Duration kShutdownGrace = absl::Seconds(1);

// The members that AdviceFor() tries to connect to, which takes up to two
// seconds for each. Certificates are mostly missing at one member, or at all
// others.
constexpr size_t kMembersToTry = 3;

absl::Status CheckOptions(const NetworkGroup::Options& options) {
  const auto members = static_cast<int>(options.addresses.size());
  if (options.rank < 0 || options.rank >= members) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank is ", options.rank,
                     ", but must be at least 0 and "
                     "below ",
                     members, ", the number of addresses"));
  }
  if (options.timeout <= absl::ZeroDuration() ||
      options.join_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "timeouts must be above 0, but are ",
        absl::FormatDuration(options.timeout), " for an exchange and ",
        absl::FormatDuration(options.join_timeout), " to join"));
  }
  return absl::OkStatus();
}

}  // namespace

struct NetworkGroup::Wait {
  Wait(absl::Duration timeout, absl::Duration notice, bool connects = false)
      : deadline(SteadyDeadline(timeout)),
        next_line(SteadyDeadline(notice)),
        advises(connects) {}

  const std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
  const std::chrono::steady_clock::time_point deadline;
  std::chrono::steady_clock::time_point next_line;  // of the log
  const bool advises;  // lines of the log have AdviceFor() the members
};

NetworkGroup::NetworkGroup(const Options& options)
    : options_(options),
      pid_space_(options.shared_memory ? OwnPidSpace() : ""),
      service_(*this),
      view_({options.rank, DrawIncarnation(),
             static_cast<int>(options.addresses.size()), options.purpose}),
      table_(static_cast<int>(options.addresses.size()), /*takers=*/1) {}

absl::StatusOr<std::unique_ptr<NetworkGroup>> NetworkGroup::Join(
    const Options& options) {
  LOCKSTEP_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<NetworkGroup> group(new NetworkGroup(options));
  LOCKSTEP_RETURN_IF_ERROR(group->Start());
  LOCKSTEP_RETURN_IF_ERROR(group->WaitUntilFormed());
  LOCKSTEP_RETURN_IF_ERROR(group->StartProbes());
  return group;
}

absl::Status NetworkGroup::Start() {
  if (members() == 1) return absl::OkStatus();
  Greeting self;
  {
    MutexLock lock(mutex_);
    self = view_.self();
  }
  // The links are made before the server starts, because its calls use them.
  for (int r = 0; r < members(); ++r) {
    links_.push_back(nullptr);
    if (r == rank()) continue;
    GroupLink::Options link;
    link.address = options_.addresses[static_cast<size_t>(r)];
    link.receiver = r;
    link.self = self;
    link.on_answer = [this, r](const absl::StatusOr<GreetingAnswer>& answer) {
      return OnAnswer(r, answer);
    };
    link.on_given = [this, r](uint64_t sequence, const absl::Status& status) {
      OnGiven(r, sequence, status);
    };
    links_.back() = std::make_unique<GroupLink>(link);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      server_,
      GrpcServer::Start(options_.addresses[static_cast<size_t>(rank())],
                        {&service_}));
  // Only now: a process that was started for this rank by mistake, whose
  // address is in use, must not greet a group that is formed.
  for (const auto& link : links_) {
    if (link != nullptr) LOCKSTEP_RETURN_IF_ERROR(link->Begin());
  }
  return absl::OkStatus();
}

absl::Status NetworkGroup::StartProbes() {
  if (members() == 1) return absl::OkStatus();
  PeerProbes::Options probes;
  probes.addresses = options_.addresses;
  probes.every = options_.probe_every;
  probes.timeout = options_.probe_timeout;
  probes.on_lost = [this](int r, const absl::Status& why) { OnLost(r, why); };
  {
    MutexLock lock(mutex_);
    probes.self = view_.self();
  }
  probes_ = std::make_unique<PeerProbes>(std::move(probes));
  return probes_->Begin();
}

NetworkGroup::~NetworkGroup() {
  probes_.reset();
  {
    MutexLock lock(mutex_);
    if (ended_.ok()) {
      ended_ = absl::AbortedError(absl::StrCat("rank ", rank(), " has left"));
    }
  }
  // In this order: End() stops callbacks into this object; the server's calls
  // may use the links until it has shut down; then the links say farewell.
  for (const auto& link : links_) {
    if (link != nullptr) link->End();
  }
  if (server_ != nullptr) server_->Shutdown(kShutdownGrace);
  server_.reset();
  links_.clear();
}

absl::Status NetworkGroup::WaitUntilFormed() {
  Wait wait(options_.join_timeout, options_.notice, /*connects=*/true);
  std::vector<int> awaited;
  {
    MutexLock lock(mutex_);
    do {
      LOCKSTEP_RETURN_IF_ERROR(view_.refusal());
      LOCKSTEP_RETURN_IF_ERROR(ended_);
      if (view_.formed()) return absl::OkStatus();
      awaited = view_.Awaited();
    } while (WaitOn("Join", awaited, wait));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      NamesOf(awaited), " did not join within ",
      absl::FormatDuration(options_.join_timeout), AdviceFor(awaited)));
}

bool NetworkGroup::WaitOn(const std::string& call,
                          const std::vector<int>& missing, Wait& wait) {
  const auto now = std::chrono::steady_clock::now();
  if (now >= wait.deadline) return false;
  if (now >= wait.next_line) {
    std::string advice;
    if (wait.advises) {
      mutex_.Unlock();
      advice = AdviceFor(missing);
      mutex_.Lock();
    }
    spdlog::warn("waits for {} in {} for {}{}", NamesOf(missing), call,
                 absl::FormatDuration(absl::Trunc(
                     absl::FromChrono(now - wait.begin), absl::Seconds(1))),
                 advice);
    wait.next_line = SteadyDeadline(2 * options_.notice);
    // A change may have come while the lock was not held.
    if (wait.advises) return true;
  }
  changed_.WaitFor(mutex_, std::min(wait.deadline, wait.next_line) - now);
  return true;
}

std::string NetworkGroup::NamesOf(const std::vector<int>& ranks) const {
  std::vector<std::string> names;
  for (const int r : ranks) {
    names.push_back(absl::StrCat(
        "rank ", r, " (", options_.addresses[static_cast<size_t>(r)], ")"));
  }
  return absl::StrJoin(names, ", ");
}

std::string NetworkGroup::AdviceFor(const std::vector<int>& ranks) const {
  for (size_t i = 0; i < std::min(ranks.size(), kMembersToTry); ++i) {
    const std::string advice =
        ConnectionAdvice(options_.addresses[static_cast<size_t>(ranks[i])]);
    if (!advice.empty()) return absl::StrCat("; ", advice);
  }
  return "";
}

absl::StatusOr<std::vector<Parcel>> NetworkGroup::Exchange(
    const std::string& description, std::vector<Leaf> mine) {
  std::string call = description;
  const absl::Status fit = WithholdMisfits(call, mine);
  auto parcels = GiveAndTake(
      call, std::vector<Parcel>(
                static_cast<size_t>(members()),
                std::make_shared<const std::vector<Leaf>>(std::move(mine))));
  LOCKSTEP_RETURN_IF_ERROR(fit);
  return parcels;
}

absl::StatusOr<std::vector<Parcel>> NetworkGroup::Scatter(
    const std::string& description, std::vector<std::vector<Leaf>> for_member) {
  LOCKSTEP_RETURN_IF_ERROR(CheckScatter(*this, for_member));
  std::string call = description;
  absl::Status fit;
  std::vector<Parcel> parcels;
  for (std::vector<Leaf>& leaves : for_member) {
    fit.Update(WithholdMisfits(call, leaves));
    parcels.push_back(
        std::make_shared<const std::vector<Leaf>>(std::move(leaves)));
  }
  auto taken = GiveAndTake(call, parcels);
  LOCKSTEP_RETURN_IF_ERROR(fit);
  return taken;
}

std::vector<bool> NetworkGroup::SharersOf(
    const std::vector<Parcel>& for_member) {
  std::vector<bool> sharers(for_member.size());
  // A parcel for several members counts once.
  std::map<const std::vector<Leaf>*, size_t> sizes;
  {
    MutexLock lock(mutex_);
    for (int r = 0; r < members(); ++r) {
      const auto i = static_cast<size_t>(r);
      if (r == rank()) continue;
      // An exchange does not wait for a member that is gone, and that may be
      // about to read its payload: from now on the memory stays as it is.
      if (!view_.gone(r).ok()) return std::vector<bool>(for_member.size());
      if (!view_.reads_memory_of(r, pid_space_) || !links_[i]->shares()) {
        continue;
      }
      const size_t size = PayloadSize(*for_member[i]);
      if (size < SharedOutbox::kSmallest) continue;
      sharers[i] = true;
      sizes[for_member[i].get()] = size;
    }
  }
  size_t total = 0;
  for (const auto& [parcel, size] : sizes) total += size;
  // Without the lock: this may allocate much.
  if (!outbox_.Begin(total)) sharers.assign(sharers.size(), false);
  return sharers;
}

absl::StatusOr<std::vector<Parcel>> NetworkGroup::GiveAndTake(
    const std::string& description, const std::vector<Parcel>& for_member) {
  Wait wait(TimeoutOr(options_.timeout), options_.notice);
  v1::ParcelHeader header;
  header.set_description(description);
  header.mutable_sender()->set_rank(rank());
  std::map<int, uint64_t> receivers;
  {
    MutexLock lock(mutex_);
    LOCKSTEP_RETURN_IF_ERROR(ended_);
    header.mutable_sender()->set_incarnation(view_.self().incarnation);
    header.set_sequence(next_++);
    LOCKSTEP_RETURN_IF_ERROR(
        table_.Add(rank(), header.sequence(), description,
                   for_member[static_cast<size_t>(rank())]));
    for (int r = 0; r < members(); ++r) {
      if (r == rank()) continue;
      // Before Give(), whose answer may come at once.
      unfinished_[r] = absl::OkStatus();
      receivers[r] = view_.incarnation(r);
    }
  }
  const std::vector<bool> sharers = SharersOf(for_member);
  for (const auto& [r, incarnation] : receivers) {
    const Parcel& parcel = for_member[static_cast<size_t>(r)];
    header.set_receiver_incarnation(incarnation);
    header.clear_leaves();
    EncodeLeaves(*parcel, header);
    header.clear_shared();
    if (sharers[static_cast<size_t>(r)]) {
      *header.mutable_shared() = outbox_.Place(parcel);
    }
    links_[static_cast<size_t>(r)]->Give({header, parcel});
  }
  MutexLock lock(mutex_);
  do {
    auto result = Look(header.sequence());
    if (result.has_value()) return *std::move(result);
  } while (WaitOn(description, AwaitedIn(header.sequence()), wait));
  absl::Status late = Late(description, header.sequence());
  // Another member may have completed this exchange, so the group cannot go on.
  ended_ = late;
  return late;
}

absl::Status NetworkGroup::Ended() const {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(ended_);
  for (int r = 0; r < members(); ++r) {
    LOCKSTEP_RETURN_IF_ERROR(view_.gone(r));
  }
  return absl::OkStatus();
}

std::optional<absl::StatusOr<std::vector<Parcel>>> NetworkGroup::Look(
    uint64_t sequence) {
  const std::vector<int> missing = table_.Missing(sequence);
  for (const int r : missing) {
    if (ended_.ok()) ended_ = view_.gone(r);
  }
  bool given = true;
  for (const auto& [r, status] : unfinished_) {
    // A member that has given its parcel and left does not need this one's.
    if (!view_.gone(r).ok()) continue;
    if (ended_.ok()) ended_ = status;
    given = false;
  }
  if (!ended_.ok()) return ended_;
  if (!missing.empty() || !given) return std::nullopt;
  unfinished_.clear();
  taken_ = sequence + 1;
  return table_.Take(sequence);
}

std::vector<int> NetworkGroup::AwaitedIn(uint64_t sequence) const {
  std::vector<int> late = table_.Missing(sequence);
  for (const auto& [r, status] : unfinished_) late.push_back(r);
  std::sort(late.begin(), late.end());
  late.erase(std::unique(late.begin(), late.end()), late.end());
  return late;
}

absl::Status NetworkGroup::Late(const std::string& description,
                                uint64_t sequence) const {
  return absl::DeadlineExceededError(absl::StrCat(
      description, ": rank ", absl::StrJoin(AwaitedIn(sequence), ", "),
      " did not come within ",
      absl::FormatDuration(TimeoutOr(options_.timeout))));
}

uint64_t NetworkGroup::StartOf(int rank) const {
  return rank >= 0 && rank < members() ? view_.incarnation(rank) : 0;
}

void NetworkGroup::ForgetReplaced(int rank, uint64_t start) {
  // A member that has formed its group gives its first parcel at once, maybe
  // before this one has formed its own. If it then dies, this group is formed
  // with its next start, whose parcels must not be mixed with that one.
  if (start != 0 && StartOf(rank) != start) table_.Forget(rank);
}

bool NetworkGroup::OnAnswer(int rank,
                            const absl::StatusOr<GreetingAnswer>& answer) {
  MutexLock lock(mutex_);
  if (answer.ok()) {
    const uint64_t start = StartOf(rank);
    view_.Answered(rank, *answer);
    ForgetReplaced(rank, start);
  } else if (absl::IsInvalidArgument(answer.status()) ||
             absl::IsPermissionDenied(answer.status()) ||
             absl::IsUnimplemented(answer.status())) {
    // These errors last: the member has another cluster or certificate, or its
    // address is that of another program.
    if (ended_.ok() && !view_.formed()) ended_ = answer.status();
  }
  changed_.SignalAll();
  return ended_.ok() && view_.awaits(rank);
}

void NetworkGroup::OnGiven(int rank, uint64_t sequence,
                           const absl::Status& status) {
  MutexLock lock(mutex_);
  // An exchange that failed here may have left calls behind.
  if (sequence + 1 != next_) return;
  if (status.ok()) {
    unfinished_.erase(rank);
  } else {
    unfinished_[rank] = status;
  }
  changed_.SignalAll();
}

void NetworkGroup::OnLost(int rank, const absl::Status& why) {
  const bool answered = absl::IsAborted(why) || absl::IsUnimplemented(why);
  const absl::Status lost =
      answered ? absl::Status(why.code(), absl::StrCat(NamesOf({rank}), ": ",
                                                       why.message()))
               : absl::UnavailableError(absl::StrCat(
                     NamesOf({rank}), " has not answered ", PeerProbes::kTries,
                     " probes: ", why.message()));
  MutexLock lock(mutex_);
  // A member that has said farewell is expected to be silent.
  if (view_.Lose(rank, lost)) spdlog::warn("{}", lost.message());
  changed_.SignalAll();
}

absl::StatusOr<GreetingAnswer> NetworkGroup::Hear(const Greeting& greeting,
                                                  int receiver, bool leaves) {
  absl::StatusOr<GreetingAnswer> answer;
  bool awaits = false;
  {
    MutexLock lock(mutex_);
    const uint64_t start = StartOf(greeting.rank);
    if (receiver != rank()) {
      answer = absl::InvalidArgumentError(absl::StrCat(
          "rank ", greeting.rank, " takes rank ", rank(), " for rank ",
          receiver, "; all members must have the same cluster"));
      if (ended_.ok() && !view_.formed()) ended_ = answer.status();
    } else if (leaves) {
      view_.HearLeave(greeting.rank, greeting.incarnation);
      answer = GreetingAnswer{view_.self().incarnation, false};
    } else {
      answer = view_.Hear(greeting);
      if (answer.ok()) answer->pid_space = pid_space_;
      // A member whose group has ended must not count as joined.
      if (answer.ok() && !ended_.ok()) answer->joins = false;
    }
    ForgetReplaced(greeting.rank, start);
    awaits = answer.ok() && ended_.ok() && greeting.rank >= 0 &&
             greeting.rank < members() && view_.awaits(greeting.rank);
    changed_.SignalAll();
  }
  if (awaits) links_[static_cast<size_t>(greeting.rank)]->Greet();
  return answer;
}

absl::Status NetworkGroup::AdmitLocked(const v1::ParcelHeader& header) const {
  LOCKSTEP_RETURN_IF_ERROR(view_.Check(header.sender().rank(),
                                       header.sender().incarnation(),
                                       header.receiver_incarnation()));
  if (!ended_.ok()) {
    // The sender repeats a parcel after other codes, see GroupLink.
    const bool late = absl::IsDeadlineExceeded(ended_);
    return absl::Status(late ? ended_.code() : absl::StatusCode::kAborted,
                        absl::StrCat("the group has ended at rank ", rank(),
                                     ": ", ended_.message()));
  }
  // A member may be one exchange ahead, but not two: it lacks this member's
  // parcel.
  if (header.sequence() <= next_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("exchange ", header.sequence(),
                                                 " is not the next of rank ",
                                                 rank(), ", which is ", next_));
}

bool NetworkGroup::HasCome(const v1::ParcelHeader& header) const {
  if (header.sequence() < taken_) return true;
  const std::vector<int> missing = table_.Missing(header.sequence());
  return std::find(missing.begin(), missing.end(), header.sender().rank()) ==
         missing.end();
}

absl::Status NetworkGroup::Admit(const v1::ParcelHeader& header) {
  MutexLock lock(mutex_);
  return AdmitLocked(header);
}

absl::Status NetworkGroup::Arrive(const v1::ParcelHeader& header,
                                  std::vector<Leaf> leaves) {
  MutexLock lock(mutex_);
  // Again: the group may have ended while the payload came.
  LOCKSTEP_RETURN_IF_ERROR(AdmitLocked(header));
  if (HasCome(header)) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(table_.Add(
      header.sender().rank(), header.sequence(), header.description(),
      std::make_shared<const std::vector<Leaf>>(std::move(leaves))));
  changed_.SignalAll();
  return absl::OkStatus();
}

}  // namespace lockstep::strategy
