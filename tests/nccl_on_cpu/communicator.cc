#include "tests/nccl_on_cpu/communicator.h"

#include <utility>

namespace lockstep::nccl_on_cpu {
namespace {

using strategy::kNcclInProgress;
using strategy::kNcclInvalidUsage;
using strategy::kNcclSuccess;

std::atomic<const char*> mistake = nullptr;

}  // namespace

void NoteMistake(const char* text) {
  const char* none = nullptr;
  mistake.compare_exchange_strong(none, text);
}

void ClearMistake() { mistake = nullptr; }

std::string Mistake() {
  const char* text = mistake;
  return text == nullptr ? "" : text;
}

// It stays, for threads of streams may outlive main().
Library& Library::Get() {
  static Library& library = *new Library;
  return library;
}

void Library::Configure(const Settings& settings) {
  settings_ = settings;
  fault_set_ = false;
  hangs_ = kAnyRank - 1;
  aborted_ = 0;
  ClearMistake();
}

void Library::SetFault(const Fault& fault) {
  fault_ = fault;
  fault_set_ = true;
  fault_calls_ = 0;
}

NcclResult Library::Note(const std::string& call, int rank) {
  if (!fault_set_ || fault_.call != call ||
      (fault_.rank != kAnyRank && fault_.rank != rank) ||
      ++fault_calls_ != fault_.number) {
    return kNcclSuccess;
  }
  fault_set_ = false;
  return fault_.result;
}

void Library::SetHang(int rank) {
  hangs_ = rank;
  for (const NcclComm comm : live_) {
    if (rank == kAnyRank || rank == comm->rank) comm->hangs = true;
  }
}

NcclComm Library::Make(const std::string& id, int members, int rank,
                       int device) {
  std::shared_ptr<Clique> clique = cliques_[id].lock();
  if (clique == nullptr) {
    clique = std::make_shared<Clique>(members);
    cliques_[id] = clique;
  }
  // NCCL finds a GPU that two members have, and tells all.
  if (clique->members != members || !clique->ranks.insert(rank).second ||
      !clique->devices.insert(device).second) {
    clique->error = kNcclInvalidUsage;
  }
  auto* comm = new strategy::NcclCommHandle;
  comm->rank = rank;
  comm->device = device;
  comm->clique = std::move(clique);
  comm->polls = settings_.polls;
  comm->hangs = hangs_ == kAnyRank || hangs_ == rank;
  live_.insert(comm);
  return comm;
}

void Library::Remove(NcclComm comm, bool is_abort) {
  if (is_abort) ++aborted_;
  live_.erase(comm);
  delete comm;
}

NcclResult Library::Begin(const char* call, NcclComm comm) {
  if (!IsLive(comm)) {
    NoteMistake("a call with a communicator that does not live");
    return strategy::kNcclInvalidArgument;
  }
  const NcclResult fault = Note(call, comm->rank);
  if (fault != kNcclSuccess) comm->error = fault;
  if (comm->error != kNcclSuccess) return comm->error;
  if (!comm->started || comm->polls > 0 || comm->pending != nullptr ||
      comm->finalized) {
    NoteMistake("a call while another one is under way");
    return kNcclInvalidUsage;
  }
  return kNcclSuccess;
}

NcclResult Library::Launch(NcclComm comm, std::function<void()> work) {
  comm->polls = settings_.polls;
  comm->pending = std::move(work);
  return kNcclInProgress;
}

NcclResult Library::Poll(NcclComm comm) {
  const NcclResult fault = Note("ncclCommGetAsyncError", comm->rank);
  if (fault != kNcclSuccess) comm->error = fault;
  if (comm->error != kNcclSuccess) return comm->error;
  if (comm->clique->error != kNcclSuccess) return comm->clique->error;
  if (static_cast<int>(comm->clique->ranks.size()) < comm->clique->members) {
    return kNcclInProgress;
  }
  if (comm->polls > 0) {
    --comm->polls;
    return kNcclInProgress;
  }
  comm->started = true;
  if (comm->pending != nullptr) std::exchange(comm->pending, nullptr)();
  if (comm->finalized && *comm->running > 0) return kNcclInProgress;
  return kNcclSuccess;
}

void Configure(const Settings& settings) {
  const std::lock_guard lock(Library::Get().mutex());
  Library::Get().Configure(settings);
}

void SetFault(const Fault& fault) {
  const std::lock_guard lock(Library::Get().mutex());
  Library::Get().SetFault(fault);
}

void SetHang(int rank) {
  const std::lock_guard lock(Library::Get().mutex());
  Library::Get().SetHang(rank);
}

int LiveCommunicators() {
  const std::lock_guard lock(Library::Get().mutex());
  return Library::Get().live();
}

int Aborted() {
  const std::lock_guard lock(Library::Get().mutex());
  return Library::Get().aborted();
}

}  // namespace lockstep::nccl_on_cpu
