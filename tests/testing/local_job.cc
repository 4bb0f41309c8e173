#include "tests/testing/local_job.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/log.h"
#include "common/cluster/tf_config.h"
#include "gtest/gtest.h"
#include "tests/e2e/picture_files.h"

namespace lockstep::testing {

LocalJob::LocalJob(const Options& options) {
  // Before a role's thread runs: the log of a process is set up by its first.
  EXPECT_TRUE(InitLog("test", "info").ok());
  if (options.chief) Add("chief", 1);
  Add("ps", options.servers);
  Add("worker", options.workers);
  if (options.evaluator) Add("evaluator", 1);
  const std::string state = state_directory();
  EXPECT_EQ(mkdir(state.c_str(), 0700), 0) << state;

  job_.name = "local";
  job_.train_steps = 20;
  job_.batch_size = 8;
  job_.model.kind = "softmax";
  job_.data.train_images = directory_.Join("images");
  job_.data.train_labels = directory_.Join("labels");
  job_.data.test_images = directory_.Join("test-images");
  job_.data.test_labels = directory_.Join("test-labels");
  job_.checkpoint.directory = directory_.Join("checkpoints");
  job_.heartbeat_interval = absl::Milliseconds(100);
  job_.lease = absl::Seconds(5);
  for (const auto& [images, labels, count] :
       {std::tuple(job_.data.train_images, job_.data.train_labels, 200),
        std::tuple(job_.data.test_images, job_.data.test_labels, 50)}) {
    const absl::Status written = WritePictures({images, labels}, count);
    EXPECT_TRUE(written.ok()) << written;
  }
}

void LocalJob::Add(const std::string& type, int tasks) {
  if (tasks == 0) return;
  std::vector<std::string> addresses;
  for (int i = 0; i < tasks; ++i) {
    absl::StatusOr<cli::PortReservation> port = cli::PortReservation::Create();
    EXPECT_TRUE(port.ok()) << port.status();
    if (!port.ok()) continue;
    addresses.push_back(absl::StrCat("127.0.0.1:", port->port()));
    ports_.push_back(*std::move(port));
  }
  addresses_.emplace_back(type, std::move(addresses));
}

std::string LocalJob::TfConfigOf(const std::string& type, int index) const {
  std::vector<std::string> jobs;
  for (const auto& [name, addresses] : addresses_) {
    jobs.push_back(absl::StrCat("\"", name, "\": [\"",
                                absl::StrJoin(addresses, "\", \""), "\"]"));
  }
  return absl::StrCat("{\"cluster\": {", absl::StrJoin(jobs, ", "),
                      "}, \"task\": {\"type\": \"", type,
                      "\", \"index\": ", index, "}}");
}

Cluster LocalJob::ClusterOf(const std::string& type, int index) const {
  const absl::StatusOr<TfConfig> config =
      ParseTfConfig(TfConfigOf(type, index), "local job");
  EXPECT_TRUE(config.ok()) << config.status();
  absl::StatusOr<Cluster> cluster = Cluster::Make(*config);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return *std::move(cluster);
}

std::string LocalJob::Address(const std::string& type, int index) const {
  for (const auto& [name, addresses] : addresses_) {
    if (name == type) return addresses.at(index);
  }
  return "";
}

std::string LocalJob::state_directory() const {
  return directory_.Join("state");
}

}  // namespace lockstep::testing
