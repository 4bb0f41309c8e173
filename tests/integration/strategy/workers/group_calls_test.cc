// Calls of a member that is not what it should be: a stub in place of rank 1.

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"
#include "common/wire/shared_memory_codec.h"
#include "gmock/gmock.h"
#include "strategy/workers/group_link.h"
#include "strategy/workers/group_service.h"
#include "strategy/workers/parcel_codec.h"
#include "strategy/workers/shared_outbox.h"
#include "tests/integration/strategy/workers/group_fixture.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kDenied = absl::StatusCode::kPermissionDenied;

// Answers as rank 1, and takes parcels.
class FakeMember final : public GroupHandler {
 public:
  absl::StatusOr<GreetingAnswer> Hear(const Greeting&, int,
                                      bool leaves) override {
    MutexLock lock(mutex_);
    greeted_ = true;
    if (leaves) left_ = true;
    while (leaves && suspended_) changed_.Wait(mutex_);
    return GreetingAnswer{21, true, OwnPidSpace()};
  }
  absl::Status Admit(const v1::ParcelHeader&) override {
    return absl::OkStatus();
  }
  // As a member that cannot map the memory of its host's others, or, if
  // `hangs`, as one that does not get as far as to read it.
  absl::Status Read(const v1::ParcelHeader& header, ParcelReader&) override {
    MutexLock lock(mutex_);
    ++offered_places_;
    place_ = header.shared();
    return hangs_ ? absl::UnavailableError("hangs")
                  : absl::NotFoundError("cannot map the memory");
  }
  absl::Status Arrive(const v1::ParcelHeader& header,
                      std::vector<Leaf> leaves) override {
    MutexLock lock(mutex_);
    sequences_.push_back(header.sequence());
    leaves_ = std::move(leaves);
    return absl::OkStatus();
  }

  // Also by a farewell.
  bool greeted() {
    MutexLock lock(mutex_);
    return greeted_;
  }
  bool left() {
    MutexLock lock(mutex_);
    return left_;
  }
  std::vector<uint64_t> sequences() {
    MutexLock lock(mutex_);
    return sequences_;
  }
  int offered_places() {
    MutexLock lock(mutex_);
    return offered_places_;
  }
  // Waits until one was offered.
  v1::SharedPayload place() {
    MutexLock lock(mutex_);
    while (offered_places_ == 0) {
      mutex_.Unlock();
      absl::SleepFor(absl::Milliseconds(1));
      mutex_.Lock();
    }
    return place_;
  }
  void Hang() {
    MutexLock lock(mutex_);
    hangs_ = true;
  }
  // Answers no farewell until it is called with false.
  void Suspend(bool suspended) {
    MutexLock lock(mutex_);
    suspended_ = suspended;
    changed_.SignalAll();
  }
  std::vector<Leaf> leaves() {
    MutexLock lock(mutex_);
    return leaves_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool suspended_ ABSL_GUARDED_BY(mutex_) = false;
  bool greeted_ ABSL_GUARDED_BY(mutex_) = false;
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<uint64_t> sequences_ ABSL_GUARDED_BY(mutex_);
  int offered_places_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::SharedPayload place_ ABSL_GUARDED_BY(mutex_);  // the last one
  bool hangs_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Leaf> leaves_ ABSL_GUARDED_BY(mutex_);  // of the last parcel
};

class GroupCallsTest : public GroupFixture {
 protected:
  void SetUp() override {
    Reserve(2);
    server_ = *GrpcServer::Start(addresses_[1], {&service_});
    stub_ = v1::GroupService::NewStub(MakeChannel(addresses_[0]));
  }

  // The group with rank 1 that the stub speaks for.
  std::unique_ptr<NetworkGroup> Formed() { return Formed(Of(0)); }
  std::unique_ptr<NetworkGroup> Formed(const NetworkGroup::Options& options) {
    std::unique_ptr<NetworkGroup> group;
    std::thread joining([&] { group = *NetworkGroup::Join(options); });
    // Rank 0 answers as soon as it listens.
    const auto answer = Greet(Hello());
    joining.join();
    own_ = answer->incarnation();
    return group;
  }

  static v1::GreetRequest Hello() {
    v1::GreetRequest request;
    request.mutable_sender()->set_rank(1);
    request.mutable_sender()->set_incarnation(21);
    request.set_members(2);
    request.set_purpose("one replica");
    return request;
  }

  absl::StatusOr<v1::GreetResponse> Greet(const v1::GreetRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(DeadlineIn(absl::Seconds(30)));
    context.set_wait_for_ready(true);
    v1::GreetResponse response;
    const grpc::Status status = stub_->Greet(&context, request, &response);
    if (!status.ok()) return FromGrpcStatus(status);
    return response;
  }

  v1::ParcelHeader Header(uint64_t sequence) const {
    v1::ParcelHeader header;
    header.mutable_sender()->set_rank(1);
    header.mutable_sender()->set_incarnation(21);
    header.set_receiver_incarnation(own_);
    header.set_sequence(sequence);
    header.set_description("sum");
    return header;
  }

  absl::Status Give(const std::optional<v1::ParcelHeader>& header,
                    const std::vector<std::string>& pieces = {}) {
    std::vector<v1::GiveRequest> requests;
    if (header.has_value()) *requests.emplace_back().mutable_header() = *header;
    for (const std::string& piece : pieces) {
      requests.emplace_back().set_payload(piece);
    }
    return Give(requests);
  }

  absl::Status Give(const std::vector<v1::GiveRequest>& requests) {
    grpc::ClientContext context;
    context.set_deadline(DeadlineIn(absl::Seconds(30)));
    v1::GiveResponse response;
    const auto writer = stub_->Give(&context, &response);
    bool sent = true;
    for (const v1::GiveRequest& request : requests) {
      sent = sent && writer->Write(request);
    }
    writer->WritesDone();
    return FromGrpcStatus(writer->Finish());
  }

  FakeMember member_;
  GroupService service_{member_};
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::GroupService::Stub> stub_;
  uint64_t own_ = 0;  // incarnation of rank 0
};

TEST_F(GroupCallsTest, AParcelThatIsGivenTwiceCountsOnce) {
  const auto group = Formed();
  for (uint64_t sequence = 0; sequence < 2; ++sequence) {
    EXPECT_THAT(Give(Header(sequence)), IsOk());
    EXPECT_THAT(Give(Header(sequence)), IsOk()) << "before the exchange";
    const auto answer = group->Exchange("sum", {Value::Scalar(1)});
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(answer->size(), 2u);
    EXPECT_THAT(Give(Header(sequence)), IsOk()) << "after it";
  }
  EXPECT_THAT(member_.sequences(), ::testing::ElementsAre(0, 1));
}

TEST_F(GroupCallsTest, ParcelsOfOtherGroupsAreFenced) {
  const auto group = Formed();
  v1::ParcelHeader other = Header(0);
  other.mutable_sender()->set_incarnation(22);
  EXPECT_THAT(Give(other), StatusIs(kAborted, HasSubstr("rank 1")));
  other = Header(0);
  other.set_receiver_incarnation(own_ - 1);
  EXPECT_THAT(Give(other), StatusIs(kAborted, HasSubstr("begun again")));
  EXPECT_THAT(Give(Header(0)), IsOk()) << "the right one is still wanted";
}

TEST_F(GroupCallsTest, ParcelsThatCannotBeAreRefused) {
  const auto group = Formed();
  EXPECT_THAT(Give(std::nullopt), StatusIs(kInvalid, HasSubstr("header")));
  EXPECT_THAT(Give(Header(1)), StatusIs(kInvalid, HasSubstr("not the next")));
  v1::ParcelHeader wrong = Header(0);
  wrong.mutable_sender()->set_rank(2);
  EXPECT_THAT(Give(wrong), StatusIs(kInvalid, HasSubstr("rank 2")));
  EXPECT_THAT(Give(Header(0), {"x"}), StatusIs(kInvalid, HasSubstr("more")));
  wrong = Header(0);
  wrong.add_leaves()->set_type("float32");
  EXPECT_THAT(Give(wrong, {"abc"}), StatusIs(kInvalid, HasSubstr("3 bytes")));
  v1::GiveRequest header;
  *header.mutable_header() = Header(0);
  EXPECT_THAT(Give(std::vector{header, header}),
              StatusIs(kInvalid, HasSubstr("second header")));
  EXPECT_THAT(Give(Header(0)), IsOk()) << "none of them counted";
}

// Otherwise a member could fill this one's memory with parcels that it begins.
TEST_F(GroupCallsTest, AFurtherParcelEndsTheOneBeforeIt) {
  const auto group = Formed();
  v1::ParcelHeader header = Header(0);
  EncodeLeaves({*Value::Zeros(ElementType::kFloat32, {100})}, header);
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(absl::Seconds(30)));
  v1::GiveResponse response;
  const auto open = stub_->Give(&context, &response);
  v1::GiveRequest part;
  *part.mutable_header() = header;
  ASSERT_TRUE(open->Write(part));
  part.set_payload("");
  // The receiver may read the header of the second one first, so that the first
  // one ends it; one after that has the first one before it.
  while (open->Write(part)) {
    Give(header, {std::string(400, 'y')}).IgnoreError();
  }

  EXPECT_THAT(Give(header, {std::string(400, 'y')}), IsOk());
  EXPECT_EQ(open->Finish().error_code(), grpc::StatusCode::CANCELLED);
  const auto answer =
      group->Exchange("sum", {*Value::Zeros(ElementType::kFloat32, {100})});
  EXPECT_THAT(answer, IsOk());
}

TEST_F(GroupCallsTest, AMemberThatCannotMapTheMemoryGetsThePayload) {
  const auto group = Formed();
  const Value large = *Value::Zeros(ElementType::kFloat32, {50'000});
  for (uint64_t sequence = 0; sequence < 3; ++sequence) {
    EXPECT_THAT(Give(Header(sequence)), IsOk());
    EXPECT_THAT(group->Exchange("sum", {large}), IsOk());
    EXPECT_THAT(member_.leaves(), ::testing::ElementsAre(Leaf(large)));
  }
  EXPECT_EQ(member_.offered_places(), 1) << "it was offered once too often";
}

// It may read its parcel of an exchange that ended without it.
TEST_F(GroupCallsTest, TheMemoryForAMemberThatIsGoneStaysAsItIs) {
  member_.Hang();
  const auto group = Formed();
  const Value ones = Value::Of<float>(ElementType::kFloat32, {50'000},
                                      std::vector<float>(50'000, 1));
  EXPECT_THAT(Give(Header(0)), IsOk());
  std::thread leaving([&] {
    member_.place();
    v1::GreetRequest farewell = Hello();
    farewell.set_leaves(true);
    EXPECT_THAT(Greet(farewell), IsOk());
  });
  EXPECT_THAT(group->Exchange("sum", {ones}), IsOk());
  leaving.join();

  EXPECT_THAT(
      group->Exchange("sum", {*Value::Zeros(ElementType::kFloat32, {50'000})}),
      StatusIs(kAborted));

  const v1::SharedPayload place = member_.place();
  const auto memory =
      PeerMemory::Open(FromProto(place.file()), PeerMemory::Require::kSealed);
  ASSERT_THAT(memory, IsOk());
  std::vector<float> found(50'000);
  std::memcpy(found.data(), (*memory)->bytes().data() + place.offset(),
              found.size() * sizeof(float));
  EXPECT_THAT(found, ::testing::Each(1));
}

TEST_F(GroupCallsTest, APlaceOutsideOfTheMemoryIsRefused) {
  const auto group = Formed();
  SharedOutbox outbox;
  ASSERT_TRUE(outbox.Begin(400));
  const auto parcel = std::make_shared<const std::vector<Leaf>>(
      std::vector<Leaf>{*Value::Zeros(ElementType::kFloat32, {100})});
  v1::ParcelHeader header = Header(0);
  EncodeLeaves(*parcel, header);
  *header.mutable_shared() = outbox.Place(parcel);
  v1::ParcelHeader wrong = header;
  wrong.mutable_shared()->set_offset(header.shared().offset() + 4);
  EXPECT_THAT(Give(wrong), StatusIs(kInvalid, HasSubstr("400 bytes at 4100")));
  wrong.mutable_shared()->mutable_file()->set_proof("another");
  EXPECT_THAT(Give(wrong),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("cannot map")));
  EXPECT_THAT(Give(header, {"x"}), StatusIs(kInvalid, HasSubstr("more")));
  EXPECT_THAT(Give(header), IsOk()) << "none of them counted";
}

TEST_F(GroupCallsTest, AStartAnewEndsTheGroup) {
  const auto group = Formed();
  v1::GreetRequest again = Hello();
  again.mutable_sender()->set_incarnation(22);
  EXPECT_FALSE(Greet(again)->joins());
  EXPECT_THAT(Barrier(*group), StatusIs(kAborted, HasSubstr("begun again")));
  EXPECT_FALSE(Greet(again)->joins());
}

// As after kill -9: no farewell, and no server.
TEST_F(GroupCallsTest, AMemberThatAnswersNoProbeEndsTheGroup) {
  NetworkGroup::Options options = Of(0);
  options.probe_every = absl::Milliseconds(50);
  // While there is a server, it must answer in time also on a busy machine.
  options.probe_timeout = absl::Seconds(1);
  const auto group = Formed(options);
  // Rank 0 and 1 have each other's parcel, so the first exchange completes.
  EXPECT_THAT(Give(Header(0)), IsOk());
  EXPECT_THAT(group->Exchange("sum", {}).status(), IsOk());
  server_->Shutdown(absl::ZeroDuration());
  server_.reset();
  const auto dead =
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr(absl::StrCat("rank 1 (", addresses_[1],
                                      ") has not answered 3 probes")));
  for (int call = 0; call < 2; ++call) {
    EXPECT_THAT(group->Exchange("sum", {}).status(), dead);
  }
  EXPECT_THAT(group->Ended(), dead);
  EXPECT_THAT(Give(Header(2)), StatusIs(kAborted, HasSubstr("has ended")));
}

TEST_F(GroupCallsTest, AnotherProgramThatHasAMembersAddressIsNamed) {
  const auto group = Formed();
  server_->Shutdown(absl::ZeroDuration());
  server_.reset();
  server_ = *GrpcServer::Start(addresses_[1], {});
  EXPECT_THAT(group->Exchange("sum", {}).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr(absl::StrCat("process at ", addresses_[1]))));
}

// A start of rank 1 has formed its group, and given a parcel, before rank 0 has
// its answer; then it dies.
TEST_F(GroupCallsTest, ParcelsOfAStartThatWasReplacedDoNotCount) {
  server_.reset();
  std::vector<Group> groups(2);
  std::thread first([&] { groups[0] = NetworkGroup::Join(Of(0)); });
  own_ = Greet(Hello())->incarnation();
  EXPECT_THAT(Give(Header(0)), IsOk()) << "the parcel without a value";

  std::thread second([&] { groups[1] = NetworkGroup::Join(Of(1)); });
  first.join();
  second.join();
  for (int exchange = 0; exchange < 2; ++exchange) {
    ForEach(2, [&](size_t rank) {
      ASSERT_THAT(groups[rank], IsOk());
      const auto parcels =
          (*groups[rank])
              ->Exchange("sum", {Value::Scalar(static_cast<double>(rank))});
      ASSERT_THAT(parcels, IsOk());
      EXPECT_THAT(*(*parcels)[1], ::testing::ElementsAre(Value::Scalar(1.0)));
    });
  }
}

TEST_F(GroupCallsTest, AnotherReceiverIsRefused) {
  const auto group = Formed();
  v1::GreetRequest request = Hello();
  request.set_receiver(1);
  EXPECT_THAT(Greet(request).status(),
              StatusIs(kInvalid, HasSubstr("takes rank 0 for rank 1")));
}

TEST_F(GroupCallsTest, AMemberThatEndsTellsTheOthers) {
  { const auto group = Formed(); }
  EXPECT_TRUE(member_.left());
}

// As one that SIGSTOP has suspended.
TEST_F(GroupCallsTest, AMemberThatDoesNotAnswerTheFarewellIsNotAwaited) {
  auto group = Formed();
  member_.Suspend(true);
  const auto begin = std::chrono::steady_clock::now();
  group = nullptr;
  // Without a limit the farewell would take as long as the member is suspended.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  member_.Suspend(false);
}

TEST_F(GroupCallsTest, AMemberWhoseAddressIsInUseGreetsNoOther) {
  const auto other = GrpcServer::Start(addresses_[0], {});
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT(NetworkGroup::Join(Of(0)).status(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(member_.greeted());
}

// With certificates, a worker speaks for itself alone.
TEST_F(GroupCallsTest, AWorkerCannotSpeakForAnother) {
  const testing::TestAuthority authority;
  const testing::TempDir directory;
  testing::WriteTlsFiles(directory.path(), authority.Files("worker/2"));
  SetOwnSecurity(
      *TransportSecurity::Load({directory.path(), "", {{"localhost:1", {}}}}));
  const cli::PortReservation port = *cli::PortReservation::Create();
  const std::string address = absl::StrCat("127.0.0.1:", port.port());
  auto peers = *TransportSecurity::Load(
      {directory.path(), "", {{address, {TaskType::kWorker, 2}}}});
  SetOwnSecurity(peers);
  FakeMember member;
  GroupService service(member);
  const auto server = GrpcServer::Start(address, {&service});
  ASSERT_THAT(server, IsOk());
  stub_ = v1::GroupService::NewStub(MakeChannel(address));
  EXPECT_THAT(Greet(Hello()).status(), StatusIs(kDenied, HasSubstr("worker")));
  EXPECT_THAT(Give(Header(0)), StatusIs(kDenied, HasSubstr("worker")));
  v1::GreetRequest own = Hello();
  own.mutable_sender()->set_rank(2);
  EXPECT_THAT(Greet(own), IsOk());
  SetOwnSecurity(nullptr);
}

}  // namespace
}  // namespace lockstep::strategy
