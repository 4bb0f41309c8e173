// Memory that a worker offers to a server, as it should be and otherwise.

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "common/wire/shared_memory_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/parameter_service.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Stub = v1::ParameterService::Stub;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kFailed = absl::StatusCode::kFailedPrecondition;
constexpr size_t kHeader = SharedMemory::kHeaderSize;

// The memory of worker 0: 48 bytes of gradients, all of them 1.
class ParameterServiceSharingTest : public ::testing::Test {
 protected:
  ParameterServiceSharingTest() {
    auto memory = SharedMemory::Create("test", 48);
    EXPECT_OK(memory);
    memory_ = *std::move(memory);
    const std::string gradients = ServedShard::PushRequest(0, 1, 1).payload();
    std::memcpy(memory_->bytes().data(), gradients.data(), 48);
    *request_.mutable_identity() = ServedShard::Worker(0);
    *request_.mutable_gradients() = ToProto(memory_->file());
    for (const size_t offset : {0, 16, 32}) {
      request_.add_offsets(kHeader + offset);
    }
  }

  absl::StatusOr<v1::OpenSharedMemoryResponse> Open() {
    return Call(shard_.parameters(), &Stub::OpenSharedMemory, request_);
  }
  absl::StatusOr<v1::PushResponse> Push() {
    v1::PushRequest push = ServedShard::PushRequest(0, 1, 0);
    push.clear_payload();
    push.mutable_header()->set_shared(true);
    push.mutable_header()->set_return_values(true);
    return Call(shard_.parameters(), &Stub::Push, push);
  }
  // Nothing is shared, and the server can make its first step.
  void ExpectUntouched() {
    EXPECT_THAT(Push().status(), StatusIs(kNotFound));
    EXPECT_THAT(shard_.Values(), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 2, 2));
    shard_.Step(0, 1);
    EXPECT_THAT(shard_.Values(),
                ElementsAre(0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1.5, 1.5));
  }

  ServedShard shard_;
  std::unique_ptr<SharedMemory> memory_;
  v1::OpenSharedMemoryRequest request_;
};

TEST_F(ParameterServiceSharingTest, GradientsAndValuesNeedNoPayload) {
  shard_.Open();
  shard_.Announce(0);
  auto opened = Open();
  ASSERT_OK(opened);
  auto values = PeerMemory::Open(FromProto(opened->values()),
                                 PeerMemory::Require::kAnyFile);
  ASSERT_OK(values);

  auto pushed = Push();

  ASSERT_OK(pushed);
  EXPECT_EQ(pushed->payload(), "");
  EXPECT_THAT(pushed->header().outcomes(), Each(v1::ACCEPTED));
  ASSERT_EQ(pushed->header().values_size(), 3);
  float value = 0;
  std::memcpy(&value,
              (*values)->bytes().data() + pushed->header().values(1).offset(),
              sizeof(value));
  EXPECT_EQ(value, 0.5);
  shard_.Step(0, 1);
  EXPECT_THAT(shard_.Values(),
              ElementsAre(0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1.5, 1.5));
}

TEST_F(ParameterServiceSharingTest, BytesThatAreSharedCountAsMoved) {
  shard_.Open();
  ASSERT_OK(Open());
  const size_t before = shard_.moved();

  ASSERT_OK(Push());
  EXPECT_EQ(shard_.moved() - before, 48);

  v1::PullRequest pull = ServedShard::PullRequest(0);
  pull.set_shared(true);
  ASSERT_OK(Call(shard_.parameters(), &Stub::Pull, pull));
  EXPECT_EQ(shard_.moved() - before, 96);
}

TEST_F(ParameterServiceSharingTest, OpeningCanBeRepeated) {
  shard_.Open();
  ASSERT_OK(Open());
  ASSERT_OK(Open());

  EXPECT_OK(Push());
}

TEST_F(ParameterServiceSharingTest, MemoryThatIsNotTheWorkersIsRefused) {
  shard_.Open();
  v1::SharedFile& file = *request_.mutable_gradients();
  const v1::SharedFile valid = file;

  file.set_fd(1000000);
  EXPECT_THAT(Open().status(), StatusIs(kNotFound));
  file = valid;
  file.set_pid(std::numeric_limits<int32_t>::max());
  EXPECT_THAT(Open().status(), StatusIs(kNotFound));
  file = valid;
  file.set_pid(-1);
  EXPECT_THAT(Open().status(), StatusIs(kInvalid));
  file = valid;
  file.set_proof("sixteen bytes...");
  EXPECT_THAT(Open().status(), StatusIs(kNotFound));
  file.clear_proof();
  EXPECT_THAT(Open().status(), StatusIs(kInvalid));
  file = valid;
  file.set_size(file.size() + 1);
  EXPECT_THAT(Open().status(), StatusIs(kNotFound));
  request_.clear_gradients();
  EXPECT_THAT(Open().status(), StatusIs(kInvalid));

  ExpectUntouched();
}

// Which descriptors the processes of this host have, and of what, is not told.
TEST_F(ParameterServiceSharingTest, WhyAFileIsRefusedIsNotTold) {
  shard_.Open();
  const v1::SharedFile valid = request_.gradients();
  std::set<std::string> messages;
  const auto refuse = [&](auto spoil) {
    *request_.mutable_gradients() = valid;
    spoil(*request_.mutable_gradients());
    const absl::Status status = Open().status();
    EXPECT_THAT(status, StatusIs(kNotFound, HasSubstr("server's log")));
    messages.insert(std::string(status.message()));
  };

  refuse([](v1::SharedFile& file) { file.set_fd(0); });
  refuse([](v1::SharedFile& file) { file.set_fd(1000000); });
  refuse([](v1::SharedFile& file) { file.set_pid(1); });
  refuse([](v1::SharedFile& file) { file.set_size(file.size() + 1); });
  refuse([](v1::SharedFile& file) { file.set_proof("sixteen bytes..."); });
  refuse([](v1::SharedFile& file) { file.set_pid_space("another"); });

  EXPECT_THAT(messages, SizeIs(1));
}

// A link, to a file with the right bytes, that could be cut while it is read.
TEST_F(ParameterServiceSharingTest, OrdinaryFilesAreRefused) {
  shard_.Open();
  const TempDir directory;
  const std::string bytes(request_.gradients().size(), 'x');
  const int target =
      open(directory.Join("file").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(write(target, bytes.data(), bytes.size()), ssize_t(bytes.size()));
  ASSERT_EQ(symlink("file", directory.Join("link").c_str()), 0);
  const int fd = open(directory.Join("link").c_str(), O_RDONLY);
  request_.mutable_gradients()->set_fd(fd);
  request_.mutable_gradients()->set_proof(bytes.substr(0, 16));

  EXPECT_THAT(Open().status(), StatusIs(kNotFound));

  close(fd);
  close(target);
  ExpectUntouched();
}

TEST_F(ParameterServiceSharingTest, GradientsOutsideTheMemoryAreRefused) {
  shard_.Open();
  request_.set_offsets(2, kHeader + 33);
  EXPECT_THAT(Open().status(), StatusIs(kInvalid, HasSubstr("offsets[2]")));
  request_.set_offsets(2, std::numeric_limits<uint64_t>::max());
  EXPECT_THAT(Open().status(), StatusIs(kInvalid, HasSubstr("offsets[2]")));
  // Part 2 has elements of eight bytes, the others of four.
  request_.set_offsets(2, kHeader + 28);
  EXPECT_THAT(Open().status(), StatusIs(kInvalid, HasSubstr("multiple of 8")));
  request_.set_offsets(2, kHeader + 32);
  request_.set_offsets(0, kHeader + 2);
  EXPECT_THAT(Open().status(), StatusIs(kInvalid, HasSubstr("multiple of 4")));
  request_.set_offsets(0, kHeader);
  request_.mutable_offsets()->RemoveLast();
  EXPECT_THAT(Open().status(), StatusIs(kInvalid, HasSubstr("2 given")));

  ExpectUntouched();
}

TEST_F(ParameterServiceSharingTest, CallerThatIsNoWorkerOfTheJobIsRefused) {
  EXPECT_THAT(Open().status(), StatusIs(absl::StatusCode::kUnavailable));
  shard_.Open();
  request_.mutable_identity()->set_job_id("another");
  EXPECT_THAT(Open().status(), StatusIs(kFailed));
  *request_.mutable_identity() = ServedShard::Worker(2);
  EXPECT_THAT(Open().status(), StatusIs(kInvalid));

  ExpectUntouched();
}

TEST_F(ParameterServiceSharingTest, MemoryOfADeadWorkerIsReleased) {
  shard_.Open();
  ASSERT_OK(Open());
  auto shard = shard_.host().shard();
  ASSERT_OK(shard);
  const server::SharedGradients& shared = (*shard)->shared_gradients();
  EXPECT_OK(shared.Find(0, 1, 0, 3));

  shard_.host().ExpireWorker(0, 1);

  EXPECT_THAT(shared.Find(0, 1, 0, 3).status(), StatusIs(kNotFound));
  EXPECT_THAT(Push().status(), StatusIs(kFailed));
}

TEST_F(ParameterServiceSharingTest, SharedPushHasNoPayload) {
  shard_.Open();
  ASSERT_OK(Open());
  v1::PushRequest push = ServedShard::PushRequest(0, 1, 1);
  push.mutable_header()->set_shared(true);

  EXPECT_THAT(Call(shard_.parameters(), &Stub::Push, push).status(),
              StatusIs(kInvalid, HasSubstr("48 bytes")));
}

TEST_F(ParameterServiceSharingTest,
       PullIsSharedOnlyOnceTheWorkerHasOpenedMemory) {
  shard_.Open();
  v1::PullRequest pull = ServedShard::PullRequest(0);
  pull.set_shared(true);

  EXPECT_THAT(Call(shard_.parameters(), &Stub::Pull, pull).status(),
              StatusIs(kNotFound));
  ASSERT_OK(Open());
  auto pulled = Call(shard_.parameters(), &Stub::Pull, pull);

  ASSERT_OK(pulled);
  EXPECT_EQ(pulled->header().values_size(), 3);
  EXPECT_EQ(pulled->payload(), "");
}

TEST(ParameterServiceCompatibleSharingTest, CompatibleModeSharesNothing) {
  ServedShard shard(0, SyncMode::kCompatible);
  shard.Open();
  auto memory = SharedMemory::Create("test", 48);
  ASSERT_OK(memory);
  v1::OpenSharedMemoryRequest request;
  *request.mutable_identity() = ServedShard::Worker(0);
  *request.mutable_gradients() = ToProto((*memory)->file());

  EXPECT_THAT(
      Call(shard.parameters(), &Stub::OpenSharedMemory, request).status(),
      StatusIs(kFailed, HasSubstr("compatible mode")));
}

}  // namespace
}  // namespace lockstep::testing
