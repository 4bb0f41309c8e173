#include "strategy/nccl/nccl_group.h"

#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "strategy/nccl/member_report.h"

namespace lockstep::strategy {
namespace {

struct Libraries {
  CudaFunctions cuda;
  NcclFunctions nccl;
};

std::string HostName() {
  std::array<char, 256> name = {};
  // gethostname() need not end a name that it cuts; the last zero does.
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

absl::Status CannotStart(size_t rank, const std::string& error) {
  return absl::FailedPreconditionError(absl::StrCat(
      "NCCL cannot be used, because rank ", rank, " cannot start it: ", error,
      "; or use communication DIRECT (WorkersOptions::implementation "
      "kDirect)"));
}

// Adds the GPUs of this host.
absl::Status ReadGpus(const CudaFunctions& cuda, MemberReport& report) {
  int count = 0;
  absl::Status status =
      ToStatus(cuda, "cudaGetDeviceCount", cuda.get_device_count(&count));
  cuda.get_last_error();  // else the thread's next launch would have it
  for (int device = 0; status.ok() && device < count; ++device) {
    std::array<char, 32> id = {};
    status =
        ToStatus(cuda, absl::StrCat("cudaDeviceGetPCIBusId of GPU ", device),
                 cuda.device_get_pci_bus_id(
                     id.data(), static_cast<int>(id.size()) - 1, device));
    report.gpus.emplace_back(id.data());
  }
  if (status.ok() && count > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("it has no GPU",
                   status.ok() ? "" : absl::StrCat(" (", status.message(), ")"),
                   "; give the host a GPU and its driver"));
}

// Opens the libraries, and describes this member.
absl::Status Describe(const LibraryNames& names, Libraries& libraries,
                      MemberReport& report) {
  LOCKSTEP_ASSIGN_OR_RETURN(libraries.cuda, LoadCuda(names.cuda));
  LOCKSTEP_RETURN_IF_ERROR(ReadGpus(libraries.cuda, report));
  LOCKSTEP_ASSIGN_OR_RETURN(libraries.nccl, LoadNccl(names.nccl));
  LOCKSTEP_RETURN_IF_ERROR(ToStatus(libraries.nccl, "ncclGetVersion",
                                    libraries.nccl.get_version(&report.nccl)));
  if (report.nccl >= kOldestNccl) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("its NCCL has version ", report.nccl,
                   "; install NCCL 2.14 (", kOldestNccl, ") or newer"));
}

// All members must call the functions below. Each returns only an error of the
// wrapped group. Its result goes to an out-parameter, which holds the same
// error at all members if NCCL cannot be used: all must decide alike.

// Sets `devices` to the device of each member.
absl::Status Agree(Collective& group, const NcclGroup::Options& options,
                   const MemberReport& mine,
                   absl::StatusOr<std::vector<int>>& devices) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<Parcel> parcels,
      group.Exchange(options.required ? "join NCCL, which is required"
                                      : "join NCCL where it can be used",
                     {ReportLeaf(mine)}));
  std::vector<MemberReport> reports;
  for (const Parcel& parcel : parcels) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        reports.emplace_back(),
        ReportOf(parcel->empty() ? Leaf() : parcel->front()));
  }
  devices = AssignGpus(reports);
  return absl::OkStatus();
}

// Sets `shared` to an id that rank 0 makes.
absl::Status ShareId(Collective& group, const NcclFunctions& nccl,
                     absl::StatusOr<NcclUniqueId>& shared) {
  NcclUniqueId id = {};
  absl::Status made;
  if (group.rank() == 0) {
    made = ToStatus(nccl, "ncclGetUniqueId", nccl.get_unique_id(&id));
  }
  const std::vector<char> bytes(std::begin(id.internal), std::end(id.internal));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<Leaf> leaves,
      Broadcast(group, 0,
                {TextLeaf(std::string(made.message())),
                 Value::Of(ElementType::kInt32, {sizeof(id) / 4}, bytes)}));
  const auto* value =
      leaves.size() == 2 ? std::get_if<Value>(&leaves[1]) : nullptr;
  if (value == nullptr || value->bytes().size() != sizeof(id)) {
    return absl::InvalidArgumentError(
        "rank 0 sent no id of NCCL; all members must run the same build");
  }
  std::memcpy(&id, value->bytes().data(), sizeof(id));
  shared = id;
  const std::string error = TextOf(leaves[0]);
  if (!error.empty()) shared = CannotStart(0, error);
  return absl::OkStatus();
}

// Replaces this member's `ready` by that of all members. If there are several
// errors, those of members that only waited in vain for another one come last.
absl::Status AllReady(Collective& group, absl::Status& ready) {
  const bool waits = absl::IsDeadlineExceeded(ready) ||
                     absl::IsAborted(ready) || absl::IsUnavailable(ready);
  std::vector<Leaf> mine(2);
  mine[waits ? 1 : 0] = TextLeaf(std::string(ready.message()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<Parcel> parcels,
      group.Exchange("NCCL has started", std::move(mine)));
  ready = absl::OkStatus();
  for (size_t kind = 0; kind < 2; ++kind) {
    for (size_t r = 0; r < parcels.size() && ready.ok(); ++r) {
      const std::vector<Leaf>& texts = *parcels[r];
      const std::string error = kind < texts.size() ? TextOf(texts[kind]) : "";
      if (!error.empty()) ready = CannotStart(r, error);
    }
  }
  return absl::OkStatus();
}

absl::Status Connect(
    Collective& group, const NcclGroup::Options& options,
    const Libraries& libraries, int device,
    absl::StatusOr<std::unique_ptr<NcclCommunicator>>& communicator) {
  absl::StatusOr<NcclUniqueId> id;
  LOCKSTEP_RETURN_IF_ERROR(ShareId(group, libraries.nccl, id));
  if (!id.ok()) {
    communicator = id.status();
    return absl::OkStatus();
  }
  NcclCommunicator::Options wanted;
  wanted.device = device;
  wanted.rank = group.rank();
  wanted.members = group.members();
  wanted.round_bytes = options.round_bytes;
  // Half, so that a member that waits in vain reaches AllReady() before the
  // exchange there times out at the others.
  wanted.start_timeout = options.timeout / 2;
  wanted.timeout = options.timeout;
  wanted.grace = options.grace;
  wanted.ended = [&group] { return group.Ended(); };
  communicator =
      NcclCommunicator::Make(libraries.cuda, libraries.nccl, *id, wanted);
  absl::Status ready = communicator.status();
  LOCKSTEP_RETURN_IF_ERROR(AllReady(group, ready));
  if (!ready.ok()) communicator = ready;
  return absl::OkStatus();
}

}  // namespace

NcclGroup::NcclGroup(std::unique_ptr<Collective> group,
                     std::unique_ptr<NcclCommunicator> communicator,
                     size_t small_bytes)
    : rank_(group->rank()),
      members_(group->members()),
      small_bytes_(small_bytes),
      group_(std::move(group)),
      communicator_(std::move(communicator)) {}

absl::StatusOr<std::unique_ptr<Collective>> NcclGroup::Make(
    std::unique_ptr<Collective> group, const Options& options) {
  if (group->members() == 1) return group;
  Libraries libraries;
  MemberReport mine;
  mine.host = options.host.empty() ? HostName() : options.host;
  mine.gpu = options.gpu;
  mine.problem =
      std::string(Describe(options.libraries, libraries, mine).message());
  absl::StatusOr<std::vector<int>> devices;
  LOCKSTEP_RETURN_IF_ERROR(Agree(*group, options, mine, devices));
  absl::StatusOr<std::unique_ptr<NcclCommunicator>> communicator;
  if (devices.ok()) {
    const int device = (*devices)[static_cast<size_t>(group->rank())];
    LOCKSTEP_RETURN_IF_ERROR(
        Connect(*group, options, libraries, device, communicator));
  } else {
    communicator = devices.status();
  }
  if (communicator.ok()) {
    return std::unique_ptr<Collective>(new NcclGroup(
        std::move(group), *std::move(communicator), options.small_bytes));
  }
  if (options.required) return communicator.status();
  spdlog::info("values travel over gRPC: {}", communicator.status().message());
  return group;
}

absl::StatusOr<std::vector<Parcel>> NcclGroup::Exchange(
    const std::string& description, std::vector<Leaf> mine) {
  LOCKSTEP_RETURN_IF_ERROR(ended_);
  std::string call = description;
  const absl::Status fit = WithholdMisfits(call, mine);
  auto rests = group_->Exchange(call, WithoutPayload(mine, small_bytes_));
  // Descriptions differ at all members alike; the group can go on.
  if (absl::IsInvalidArgument(rests.status())) {
    return fit.ok() ? rests.status() : fit;
  }
  if (!rests.ok()) return End(description, rests.status());
  auto parcels = Complete(std::move(mine), *rests);
  if (!parcels.ok()) return End(description, parcels.status());
  LOCKSTEP_RETURN_IF_ERROR(fit);
  return parcels;
}

absl::StatusOr<std::vector<Parcel>> NcclGroup::Complete(
    std::vector<Leaf> mine, const std::vector<Parcel>& rests) {
  const auto self = static_cast<size_t>(rank_);
  std::vector<Incoming> incoming(rests.size());
  NcclCommunicator::Transfer transfer;
  transfer.bytes.resize(rests.size());
  transfer.others.resize(rests.size());
  size_t bytes = 0;
  for (size_t r = 0; r < rests.size(); ++r) {
    if (r == self) {
      transfer.mine = PayloadOf(mine, small_bytes_);
      for (const auto leaf : transfer.mine) transfer.bytes[r] += leaf.size();
    } else {
      LOCKSTEP_ASSIGN_OR_RETURN(incoming[r], ReadRest(*rests[r]));
      transfer.bytes[r] = incoming[r].bytes();
      transfer.others[r] = incoming[r].memory();
    }
    bytes += transfer.bytes[r];
  }
  // The sum over all members, so all agree whether they call NCCL.
  if (bytes > 0) LOCKSTEP_RETURN_IF_ERROR(communicator_->Gather(transfer));
  std::vector<Parcel> parcels;
  for (size_t r = 0; r < rests.size(); ++r) {
    std::vector<Leaf>& leaves = r == self ? mine : incoming[r].leaves;
    parcels.push_back(
        std::make_shared<const std::vector<Leaf>>(std::move(leaves)));
  }
  return parcels;
}

absl::Status NcclGroup::End(const std::string& description,
                            const absl::Status& why) {
  const std::string text = absl::StrCat(description, ": ", why.message());
  ended_ = absl::Status(why.code(), text);
  // In this order: the communicator asks the group.
  communicator_.reset();
  group_.reset();
  return ended_;
}

void NcclGroup::SetTimeout(std::optional<absl::Duration> timeout) {
  if (group_ == nullptr) return;  // has ended
  group_->SetTimeout(timeout);
  communicator_->SetTimeout(timeout);
}

absl::Status NcclGroup::Ended() const {
  return ended_.ok() ? group_->Ended() : ended_;
}

}  // namespace lockstep::strategy
