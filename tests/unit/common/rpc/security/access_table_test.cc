#include "common/rpc/security/access_table.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "lockstep/v1/call_stream.pb.h"
#include "lockstep/v1/coordinator.pb.h"
#include "lockstep/v1/group.pb.h"
#include "lockstep/v1/mirror.pb.h"
#include "lockstep/v1/parameter.pb.h"
#include "lockstep/v1/shard_control.pb.h"
#include "lockstep/v1/sync.pb.h"
#include "lockstep/v1/trace.pb.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Every method of every service that the files of lockstep/v1 declare.
std::set<std::string> DeclaredMethods() {
  std::set<std::string> methods;
  for (const google::protobuf::FileDescriptor* file :
       {v1::StreamedCalls::descriptor()->file(),
        v1::RegisterRequest::descriptor()->file(),
        v1::FetchMeansRequest::descriptor()->file(),
        v1::GreetRequest::descriptor()->file(),
        v1::PullRequest::descriptor()->file(),
        v1::CommitRequest::descriptor()->file(),
        v1::TakeTokenRequest::descriptor()->file(),
        v1::BeginTraceRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      const auto* service = file->service(s);
      for (int m = 0; m < service->method_count(); ++m) {
        methods.insert(absl::StrCat("/", service->full_name(), "/",
                                    service->method(m)->name()));
      }
    }
  }
  return methods;
}

Caller With(const std::string& path) {
  return {{{absl::StrCat("lockstep://fashion/", path)}, {}}, "fashion", {}};
}

TEST(AccessTableTest, EveryMethodOfEveryServiceHasARow) {
  const std::set<std::string> declared = DeclaredMethods();
  EXPECT_GE(declared.size(), 31u);
  for (const std::string& method : declared) {
    EXPECT_NE(RolesThatMay(method), 0u) << method << " has no row";
  }
}

TEST(AccessTableTest, EveryRowHasAMethod) {
  const std::set<std::string> declared = DeclaredMethods();
  for (const AccessRow& row : AccessTable()) {
    if (!absl::StartsWith(row.method, "/lockstep.")) continue;
    EXPECT_TRUE(declared.count(std::string(row.method)) == 1) << row.method;
  }
}

TEST(AccessTableTest, RowsAreSortedAndOnce) {
  const auto rows = AccessTable();
  for (size_t i = 1; i < rows.size(); ++i) {
    EXPECT_LT(rows[i - 1].method, rows[i].method);
  }
}

TEST(AccessTableTest, MethodWithoutARowIsForNoRole) {
  for (const char* method :
       {"", "/", "Register", "/lockstep.v1.CoordinatorService/register",
        "/lockstep.v1.CoordinatorService/Register/",
        "/lockstep.v2.CoordinatorService/Register", "/zzz/zzz"}) {
    EXPECT_EQ(RolesThatMay(method), 0u) << method;
    EXPECT_THAT(CheckMayCall(With("operator/steer"), method),
                StatusIs(absl::StatusCode::kPermissionDenied));
  }
}

TEST(AccessTableTest, OnlyTheChiefControlsShards) {
  int methods = 0;
  for (const AccessRow& row : AccessTable()) {
    if (absl::StrContains(row.method, "ShardControl")) {
      EXPECT_EQ(row.roles, Bit(Role::kChief)) << row.method;
      ++methods;
    }
  }
  EXPECT_GT(methods, 0);
}

TEST(AccessTableTest, WorkersCanNeitherStopNorChangeTheJob) {
  for (const char* method : {"Stop", "Checkpoint", "ChangeSettings"}) {
    EXPECT_THAT(
        CheckMayCall(With("worker/1"),
                     absl::StrCat("/lockstep.v1.CoordinatorService/", method)),
        StatusIs(absl::StatusCode::kPermissionDenied,
                 AllOf(HasSubstr("worker 1 of job fashion must not call"),
                       HasSubstr("operator/steer"))));
  }
}

TEST(AccessTableTest, SteererMayAllThatAReaderMay) {
  for (const AccessRow& row : AccessTable()) {
    if ((row.roles & Bit(Role::kReader)) == 0) continue;
    EXPECT_NE(row.roles & Bit(Role::kSteerer), 0u) << row.method;
  }
}

TEST(AccessTableTest, CallerWithoutARoleMayCallNoMethod) {
  const Caller nobody({{"lockstep://other/operator/steer"}, {}}, "fashion", {});
  for (const AccessRow& row : AccessTable()) {
    EXPECT_THAT(CheckMayCall(nobody, row.method),
                StatusIs(absl::StatusCode::kPermissionDenied))
        << row.method;
  }
}

TEST(AccessTableTest, ConnectionWithoutCertificatesIsNotChecked) {
  for (const AccessRow& row : AccessTable()) {
    EXPECT_THAT(CheckMayCall(Caller(), row.method), IsOk());
  }
}

}  // namespace
}  // namespace lockstep
