#ifndef LOCKSTEP_TESTS_UNIT_CHIEF_OPERATORS_SETTINGS_TABLE_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_CHIEF_OPERATORS_SETTINGS_TABLE_FIXTURE_H_

#include <optional>

#include "chief/operators/settings_table.h"
#include "gtest/gtest.h"

namespace lockstep::testing {

inline JobConfig JobOf(int replicas, int workers) {
  JobConfig job;
  job.replicas_to_aggregate = replicas;
  job.total_num_replicas = workers;
  job.learning_rate.base = 0.5;
  job.checkpoint.directory = "/checkpoints";
  return job;
}

inline JobConfig ElasticJobOf(
    int replicas, int workers,
    ElasticPolicy policy = ElasticPolicy::kFixedBackups) {
  JobConfig job = JobOf(replicas, workers);
  job.elastic_workers = true;
  job.elastic_policy = policy;
  return job;
}

// A test of a table whose settings are open.
class SettingsTableFixture : public ::testing::Test {
 protected:
  chief::SettingsTable& Open(const JobConfig& job) {
    settings_table_.emplace(job);
    settings_table_->Open(chief::InitialSettings(job));
    return *settings_table_;
  }

  std::optional<chief::SettingsTable> settings_table_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_CHIEF_OPERATORS_SETTINGS_TABLE_FIXTURE_H_
