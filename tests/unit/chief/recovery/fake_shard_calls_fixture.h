#ifndef LOCKSTEP_TESTS_UNIT_CHIEF_RECOVERY_FAKE_SHARD_CALLS_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_CHIEF_RECOVERY_FAKE_SHARD_CALLS_FIXTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/servers/shard_calls.h"
#include "common/wire/status_detail.h"

namespace lockstep::chief {

// One server that notes its calls in a common log, and gives the answers that
// the test has set.
class FakeShardCalls final : public ShardCalls {
 public:
  FakeShardCalls(int index, std::vector<std::string>& log)
      : index_(index), log_(log) {}

  uint64_t last_epoch = 0;    // that it has given
  uint64_t newest_chief = 0;  // the incarnation that it knows
  ServerReport report;
  ServerReport discarded_report;  // of a shard that was created anew
  absl::Status epoch_taken;       // the result of TakeEpoch()
  absl::Status created;           // the result of CreateShard()
  absl::Status discarded;         // the same with kDiscard
  int fails_from_call = 1 << 30;  // of CreateShard()
  int creations = 0;              // calls of it
  absl::Status activated;
  Opening opening;             // the last one
  std::vector<float> scalars;  // of a snapshot
  absl::Status copied;         // the result of one
  // So many calls find it at work on its variables.
  int works_for = 0;
  int64_t bytes_between_calls = 10;
  int64_t total_bytes = 100;
  int64_t done_bytes = 0;

  absl::StatusOr<uint64_t> TakeEpoch(uint64_t newer_than) override {
    Log("epoch");
    if (incarnation_ < newest_chief) {
      return WithNewestIncarnation(absl::AbortedError("older"), newest_chief);
    }
    if (!epoch_taken.ok()) return epoch_taken;
    last_epoch = std::max(last_epoch, newer_than) + 1;
    return last_epoch;
  }
  void set_epoch(uint64_t epoch) override { epoch_ = epoch; }
  uint64_t epoch() const { return epoch_; }
  void set_incarnation(uint64_t incarnation) override {
    incarnation_ = incarnation;
  }
  uint64_t incarnation() const { return incarnation_; }

  absl::StatusOr<Created> CreateShard(const JobConfig&, const Plan&, int,
                                      State state) override {
    Log(state == State::kKeep ? "create" : "discard");
    if (!created.ok()) return created;
    if (state == State::kDiscard && !discarded.ok()) return discarded;
    if (++creations >= fails_from_call) return absl::DataLossError("no disk");
    if (works_for-- > 0) {
      done_bytes += bytes_between_calls;
      return Created{Working{done_bytes, total_bytes}};
    }
    return Created{std::nullopt,
                   {},
                   {},
                   state == State::kKeep ? report : discarded_report};
  }
  absl::Status Activate(const Opening& with) override {
    Log("activate");
    opening = with;
    return activated;
  }
  absl::Status CommitAndWait(int64_t, int64_t) override {
    Log("commit");
    return absl::OkStatus();
  }
  absl::StatusOr<Expired> ExpireWorker(int worker, uint64_t incarnation,
                                       const std::string&, int64_t step,
                                       int64_t) override {
    Log(absl::StrCat("expire ", worker, " at ", step));
    return Expired{false, false, 7, 2, incarnation};
  }
  absl::StatusOr<ShardSnapshot> BeginSnapshot(int64_t /*step*/) override {
    Log("snapshot");
    if (!copied.ok()) return copied;
    return ShardSnapshot{4, scalars};
  }
  absl::Status EndSnapshot() override {
    Log("release");
    return absl::OkStatus();
  }
  absl::Status ReadSnapshot(const ElementRange&, absl::Span<char>) override {
    return absl::OkStatus();
  }
  absl::Status WriteParts(const ElementRange&,
                          absl::Span<const char>) override {
    return absl::OkStatus();
  }
  absl::Status ReadKeys(int, int64_t, absl::Span<int64_t>) override {
    return absl::OkStatus();
  }
  absl::Status WriteRows(int, int, absl::Span<const int64_t>,
                         absl::Span<const char>) override {
    return absl::OkStatus();
  }

 private:
  void Log(const std::string& what) {
    log_.push_back(absl::StrCat(what, " ", index_));
  }

  const int index_;
  std::vector<std::string>& log_;
  uint64_t incarnation_ = 0;
  uint64_t epoch_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_TESTS_UNIT_CHIEF_RECOVERY_FAKE_SHARD_CALLS_FIXTURE_H_
