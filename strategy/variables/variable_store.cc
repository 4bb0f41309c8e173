#include "strategy/variables/variable_store.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace lockstep::strategy {
namespace {

// Owners are numbers, because a variable may outlive its store, at whose
// address another store may then lie.
uint64_t NextNumber() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

absl::string_view NameOf(Synchronization synchronization) {
  switch (synchronization) {
    case Synchronization::kNone:
      return "kNone";
    case Synchronization::kOnRead:
      return "kOnRead";
    case Synchronization::kAuto:
    case Synchronization::kOnWrite:
      return "kOnWrite";
  }
  return "";
}

absl::string_view NameOf(Aggregation aggregation) {
  switch (aggregation) {
    case Aggregation::kNone:
      return "kNone";
    case Aggregation::kSum:
      return "kSum";
    case Aggregation::kMean:
      return "kMean";
    case Aggregation::kOnlyFirstReplica:
      return "kOnlyFirstReplica";
  }
  return "";
}

// TensorFlow's default: counts and metrics, which are kOnRead, are not trained.
bool IsTrainable(const VariableOptions& options) {
  return options.trainable.value_or(options.synchronization !=
                                    Synchronization::kOnRead);
}

// OK if the type of a variable can be added. Errors: as CheckIsNumber().
absl::Status CheckAddable(const std::string& name, ElementType type) {
  const absl::Status number = CheckIsNumber(type);
  if (number.ok()) return number;
  return absl::Status(number.code(), absl::StrCat("variable \"", name,
                                                  "\": ", number.message()));
}

absl::string_view MethodOf(ScatterOp op) {
  switch (op) {
    case ScatterOp::kAdd:
      return "ScatterAdd";
    case ScatterOp::kSubtract:
      return "ScatterSubtract";
    case ScatterOp::kMultiply:
      return "ScatterMultiply";
    case ScatterOp::kDivide:
      return "ScatterDivide";
    case ScatterOp::kMin:
      return "ScatterMin";
    case ScatterOp::kMax:
      return "ScatterMax";
    case ScatterOp::kUpdate:
      return "ScatterUpdate";
  }
  return "Scatter";
}

}  // namespace

std::string CallOf(absl::string_view method, absl::string_view variable) {
  // Escaped: descriptions travel as UTF-8, which a name need not be.
  return absl::StrCat(method, "(\"", absl::CHexEscape(variable), "\")");
}

std::string CallOf(Assignment how, const Variable& variable) {
  const absl::string_view method = how == Assignment::kAssign ? "Assign"
                                   : how == Assignment::kAdd  ? "AssignAdd"
                                                              : "AssignSub";
  return CallOf(method, variable.name());
}

std::string CallOf(ScatterOp op, const Variable& variable) {
  return CallOf(MethodOf(op), variable.name());
}

std::string CallOf(const VariableOptions& options) {
  return absl::StrCat(CallOf("Create", options.name), " with ",
                      NameOf(options.synchronization), ", ",
                      NameOf(options.aggregation), ", ",
                      IsTrainable(options) ? "trainable" : "not trainable");
}

VariableStore::VariableStore(Kind kind, Placement replica_devices,
                             bool in_workers)
    : kind_(kind),
      in_workers_(in_workers),
      replica_devices_(std::move(replica_devices)),
      parameter_devices_(HasOneCopy(kind) ? Placement{{"host"}}
                                          : replica_devices_),
      number_(NextNumber()) {}

// By the kind of the store that made the variable: the default strategy uses
// those of all.
bool VariableStore::IsPlain(const Variable& variable) const {
  return IsOfOneReplica(variable.state_->kind);
}

bool VariableStore::IsOnRead(const Variable& variable) const {
  return variable.synchronization() == Synchronization::kOnRead &&
         !IsPlain(variable) && !HasOneCopy(variable.state_->kind);
}

bool VariableStore::Owns(const Variable& variable) const {
  // Code without a strategy may use the variables of all.
  return kind_ == Kind::kDefault || variable.state_->owner == number_;
}

bool VariableStore::IsForeign(const Variable& variable) const {
  return variable.state_->owner != number_;
}

absl::Status VariableStore::CheckLocal(const Variable& variable) const {
  if (!IsForeign(variable) || !variable.state_->in_workers) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "variable \"", variable.name(),
      "\" is kOnRead and has copies in several workers, which code without a "
      "strategy cannot reach; read and write it with its strategy, at all "
      "workers"));
}

absl::Status VariableStore::CheckOwner(const Variable& variable) const {
  if (Owns(variable)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("variable \"", variable.name(),
                   "\" is another strategy's; create it with this one"));
}

absl::Status VariableStore::Check(const VariableOptions& options) const {
  if (options.name.empty() || !options.initializer) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", options.name, "\" must have a name and an initializer"));
  }
  const bool mirrored = !HasOneCopy(kind_) && !IsOfOneReplica(kind_);
  if (mirrored && options.synchronization == Synchronization::kNone) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", options.name,
        "\": synchronization kNone does not say how copies keep in step; use "
        "kAuto, kOnWrite or kOnRead"));
  }
  if (const auto* other = std::get_if<Variable>(&options.colocate_with)) {
    return CheckOwner(*other);
  }
  const auto* devices = std::get_if<Placement>(&options.colocate_with);
  if (devices == nullptr || *devices == parameter_devices_ ||
      *devices == replica_devices_) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "variable \"", options.name,
      "\": colocate_with must be a variable's placement or this strategy's "
      "devices"));
}

Placement VariableStore::PlacementOf(const VariableOptions& options) const {
  if (const auto* other = std::get_if<Variable>(&options.colocate_with)) {
    return other->placement();
  }
  const auto* devices = std::get_if<Placement>(&options.colocate_with);
  return devices == nullptr ? parameter_devices_ : *devices;
}

absl::StatusOr<Variable> VariableStore::Make(const VariableOptions& options,
                                             Value initial) const {
  LOCKSTEP_RETURN_IF_ERROR(Check(options));
  LOCKSTEP_RETURN_IF_ERROR(initial.Check());
  const bool mirrored = !HasOneCopy(kind_) && !IsOfOneReplica(kind_);
  if (mirrored && options.aggregation == Aggregation::kMean &&
      IsInteger(initial.type())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", options.name, "\" is ", initial.Description(),
        ", whose mean is no integer; use kSum or kOnlyFirstReplica"));
  }
  if (mirrored && (options.aggregation == Aggregation::kMean ||
                   options.aggregation == Aggregation::kSum)) {
    LOCKSTEP_RETURN_IF_ERROR(CheckAddable(options.name, initial.type()));
  }
  auto state = std::make_shared<Variable::State>();
  state->name = options.name;
  state->synchronization = options.synchronization == Synchronization::kAuto
                               ? Synchronization::kOnWrite
                               : options.synchronization;
  state->aggregation = options.aggregation;
  state->trainable = IsTrainable(options);
  state->placement = PlacementOf(options);
  state->owner = number_;
  state->kind = kind_;
  state->in_workers = in_workers_;
  state->type = initial.type();
  state->shape = initial.shape();
  state->copies.assign(state->placement.devices.size(), initial);
  return Variable(std::move(state));
}

absl::Status VariableStore::CheckNotServed(const Variable& variable) const {
  if (!variable.state_->served) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "variable \"", variable.name(),
      "\" lies on the job's servers, whose optimizer alone writes it; hand "
      "gradients to TrainedBy::Apply()"));
}

void VariableStore::Serve(const Variable& variable) const {
  variable.state_->served = true;
}

void VariableStore::EndServing(const Variable& variable) const {
  variable.state_->served = false;
}

absl::Status VariableStore::WriteServed(
    const Variable& variable, absl::Span<const std::byte> bytes) const {
  // Not by Write(), which refuses variables that lie on servers.
  for (Value& held : variable.state_->copies) {
    if (held.bytes().size() != bytes.size()) {
      return absl::InternalError(
          absl::StrCat("variable \"", variable.name(), "\" came with ",
                       bytes.size(), " bytes, but has ", held.bytes().size()));
    }
    std::copy(bytes.begin(), bytes.end(), held.mutable_bytes().begin());
  }
  return absl::OkStatus();
}

absl::Status VariableStore::CheckWrite(const Variable& variable,
                                       const Value& value) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckOwner(variable));
  LOCKSTEP_RETURN_IF_ERROR(CheckNotServed(variable));
  LOCKSTEP_RETURN_IF_ERROR(value.Check());
  if (value.type() == variable.type() && value.shape() == variable.shape()) {
    return absl::OkStatus();
  }
  // The handle tells it: another replica may be writing a copy.
  return absl::InvalidArgumentError(
      absl::StrCat("variable \"", variable.name(), "\" is ",
                   std::string(NameOf(variable.type())), " [",
                   absl::StrJoin(variable.shape(), ","), "], the new value ",
                   value.Description()));
}

absl::Status VariableStore::Write(const Variable& variable, size_t copy,
                                  Assignment how, const Value& value) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckWrite(variable, value));
  Value& held = variable.state_->copies[copy];
  if (how == Assignment::kAssign) {
    held = value;
    return absl::OkStatus();
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckAddable(variable.name(), held.type()));
  Combine(held.type(),
          how == Assignment::kAdd ? Arithmetic::kAdd : Arithmetic::kSubtract,
          held.size(), held.mutable_bytes().data(), value.bytes().data());
  return absl::OkStatus();
}

absl::Status VariableStore::CheckWriteRows(const Variable& variable,
                                           size_t copy, ScatterOp op,
                                           const Slices& rows) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckOwner(variable));
  LOCKSTEP_RETURN_IF_ERROR(CheckNotServed(variable));
  return CheckRows(op, rows, variable.state_->copies[copy]);
}

absl::Status VariableStore::WriteRows(const Variable& variable, size_t copy,
                                      ScatterOp op, const Slices& rows) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckOwner(variable));
  LOCKSTEP_RETURN_IF_ERROR(CheckNotServed(variable));
  return ApplyScatter(op, rows, variable.state_->copies[copy]);
}

}  // namespace lockstep::strategy
