#include "tests/integration/server/rpc/served_shard.h"

#include "absl/strings/str_cat.h"
#include "common/job/codec/job_config_codec.h"
#include "common/rpc/channel.h"
#include "common/wire/wire_codec.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

std::vector<VariableSpec> Variables(DType dtype) {
  return {{"w", {8}, dtype, {Initializer::Kind::kConstant, 1, 0}},
          {"b", {2}, DType::kFloat64, {Initializer::Kind::kConstant, 2, 0}}};
}

template <typename T>
void Append(size_t count, T value, std::string& payload) {
  for (size_t i = 0; i < count; ++i) {
    payload.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
}

template <typename T>
void Read(const std::string& payload, size_t offset, size_t count,
          std::vector<double>& values) {
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, payload.data() + offset + i * sizeof(T), sizeof(T));
    values.push_back(value);
  }
}

v1::PartRange AllParts() {
  v1::PartRange parts;
  parts.set_first_part(0);
  parts.set_num_parts(3);
  return parts;
}

}  // namespace

ServedShard::ServedShard(int task_index, SyncMode mode, DType dtype)
    : mode_(mode),
      dtype_(dtype),
      host_({task_index, /*incarnation=*/1, directory_.path()}),
      commands_(host_),
      replies_(host_, Clock::Real()),
      parameter_service_(host_, commands_, replies_),
      sync_service_(host_, replies_, Clock::Real()),
      stream_service_(
          server::StreamedMethods(parameter_service_, sync_service_),
          [this](uint64_t stream) { replies_.StreamEnded(stream); }),
      control_service_(host_, commands_, replies_, Clock::Real()) {
  parameter_service_.set_moved([this](size_t bytes) { moved_ += bytes; });
  auto server =
      GrpcServer::Start("127.0.0.1:0", {&parameter_service_, &sync_service_,
                                        &control_service_, &stream_service_});
  EXPECT_OK(server);
  server_ = *std::move(server);
  channel_ = MakeChannel(address());
  parameter_stub_ = v1::ParameterService::NewStub(channel_);
  sync_stub_ = v1::SyncService::NewStub(channel_);
  control_stub_ = v1::ShardControlService::NewStub(channel_);
}

ServedShard::~ServedShard() {
  const absl::Status gone = absl::UnavailableError("the test is over");
  host_.StopCreating();
  replies_.EndAll(gone);
  control_service_.EndAll(gone);
}

std::string ServedShard::address() const {
  return absl::StrCat("127.0.0.1:", server_->port());
}

void ServedShard::Create() {
  host_.SetJobId(kJobId);
  v1::TakeEpochRequest request;
  *request.mutable_chief() = Chief();
  auto epoch =
      Call(control(), &v1::ShardControlService::Stub::TakeEpoch, request);
  ASSERT_OK(epoch);
  epoch_ = epoch->epoch();
  ASSERT_OK(Call(control(), &v1::ShardControlService::Stub::CreateShard,
                 CreateRequest()));
}

void ServedShard::Open() {
  Create();
  v1::ActivateRequest request;
  *request.mutable_chief() = Chief();
  ASSERT_OK(Call(control(), &v1::ShardControlService::Stub::Activate, request));
}

void ServedShard::AnswerWaits() {
  replies_.AnswerOld(absl::InfiniteFuture());
  control_service_.AnswerOld(absl::InfiniteFuture());
}

JobConfig ServedShard::Job() const {
  JobConfig job;
  job.mode = mode_;
  job.initial_tokens = 1;
  job.train_steps = 100;
  job.batch_size = 1;
  job.replicas_to_aggregate = replicas_;
  job.total_num_replicas = workers_;
  job.learning_rate.base = 0.5;
  job.data.train_images = "images";
  job.data.train_labels = "labels";
  return job;
}

v1::Identity ServedShard::Worker(int index, uint64_t incarnation) {
  return ToProto(Sender{kJobId, {TaskType::kWorker, index}, incarnation});
}

v1::ChiefIdentity ServedShard::Chief() const {
  v1::ChiefIdentity chief;
  *chief.mutable_identity() =
      ToProto(Sender{kJobId, {TaskType::kChief, 0}, /*incarnation=*/1});
  chief.set_epoch(epoch_);
  return chief;
}

v1::CreateShardRequest ServedShard::CreateRequest() const {
  v1::CreateShardRequest request;
  *request.mutable_chief() = Chief();
  *request.mutable_job() = ToProto(Job());
  for (const VariableSpec& variable : Variables(dtype_)) {
    *request.add_variables() = ToProto(variable);
  }
  *request.add_parts() = ToProto(Part{0, 0, 4, 0, 0});
  *request.add_parts() = ToProto(Part{0, 4, 4, 0, 1});
  *request.add_parts() = ToProto(Part{1, 0, 2, 0, 2});
  return request;
}

v1::WritePartsRequest ServedShard::WriteRequest() const {
  v1::WritePartsRequest request;
  *request.mutable_header()->mutable_chief() = Chief();
  v1::PartRange& parts =
      *request.mutable_header()->mutable_selector()->mutable_parts();
  parts.set_num_parts(2);
  Append<float>(8, 5, *request.mutable_payload());
  return request;
}

v1::PushRequest ServedShard::PushRequest(int64_t step, int64_t attempt,
                                         float gradient) {
  v1::PushRequest request;
  v1::PushHeader& header = *request.mutable_header();
  *header.mutable_identity() = Worker(0);
  *header.mutable_parts() = AllParts();
  header.set_local_step(step);
  header.set_pass(step + 1);
  header.set_attempt(attempt);
  Append<float>(8, gradient, *request.mutable_payload());
  Append<double>(2, gradient, *request.mutable_payload());
  return request;
}

v1::PullRequest ServedShard::PullRequest(int64_t step) {
  v1::PullRequest request;
  *request.mutable_identity() = Worker(0);
  *request.mutable_parts() = AllParts();
  request.set_step(step);
  return request;
}

v1::AnnounceRequest ServedShard::AnnounceRequest(int worker, int64_t step) {
  v1::AnnounceRequest request;
  *request.mutable_identity() = Worker(worker);
  request.set_local_step(step);
  request.set_pass(step + 1);
  return request;
}

v1::TakeTokenRequest ServedShard::TokenRequest(int worker, int64_t step) {
  v1::TakeTokenRequest request;
  *request.mutable_identity() = Worker(worker);
  request.set_local_step(step);
  request.set_pass(step + 1);
  return request;
}

v1::TakeAndApplyRequest ServedShard::TakeRequest(int64_t step) const {
  v1::TakeAndApplyRequest request;
  *request.mutable_chief() = Chief();
  request.set_step(step);
  return request;
}

v1::CommitRequest ServedShard::CommitRequest(int64_t step,
                                             int64_t attempt) const {
  v1::CommitRequest request;
  *request.mutable_chief() = Chief();
  request.set_step(step);
  request.set_attempt(attempt);
  return request;
}

std::vector<double> ServedShard::Values() {
  auto pulled =
      Call(parameters(), &v1::ParameterService::Stub::Pull, PullRequest(-1));
  EXPECT_OK(pulled);
  std::vector<double> values;
  if (!pulled.ok() || pulled->payload().size() != 48) return values;
  Read<float>(pulled->payload(), 0, 8, values);
  Read<double>(pulled->payload(), 32, 2, values);
  return values;
}

void ServedShard::Announce(int64_t step) {
  EXPECT_OK(
      Call(sync(), &v1::SyncService::Stub::Announce, AnnounceRequest(0, step)));
}

void ServedShard::Step(int64_t step, float gradient) {
  auto announced =
      Call(sync(), &v1::SyncService::Stub::Announce, AnnounceRequest(0, step));
  ASSERT_OK(announced);
  ASSERT_EQ(announced->decision(), v1::SELECTED);
  ASSERT_OK(Call(parameters(), &v1::ParameterService::Stub::Push,
                 PushRequest(step, announced->attempt(), gradient)));
  FinishStep(step);
}

void ServedShard::FinishStep(int64_t step) {
  auto taken = Call(control(), &v1::ShardControlService::Stub::TakeAndApply,
                    TakeRequest(step));
  ASSERT_OK(taken);
  ASSERT_TRUE(taken->prepared());
  ASSERT_OK(Call(control(), &v1::ShardControlService::Stub::Commit,
                 CommitRequest(step + 1, taken->attempt())));
}

}  // namespace lockstep::testing
