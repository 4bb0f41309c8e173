#ifndef LOCKSTEP_TESTS_UNIT_SERVER_STATE_VARIABLE_STORE_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_SERVER_STATE_VARIABLE_STORE_FIXTURE_H_

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/state/variable_store.h"
#include "tests/testing/floats.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::server {

using testing::Floats;
using testing::SetFloats;

// A server with three parts: both halves of the float32 variable "w" and the
// float64 variable "b", updated by Adam.
class VariableStoreFixture : public ::testing::Test {
 protected:
  VariableStoreFixture() {
    options_.directory = temp_dir_.path();
    options_.job_id = "job";
    options_.incarnation = 1;
    options_.optimizers.resize(1);
    options_.optimizers[0].kind = OptimizerConfig::Kind::kAdam;
    options_.settings.resize(2);
    const Initializer uniform = {Initializer::Kind::kUniform, -1, 1};
    options_.variables = {{"w", {3, 2}, DType::kFloat32, uniform},
                          {"b", {2}, DType::kFloat64, uniform}};
    options_.parts = {{0, 0, 3, DType::kFloat32},
                      {0, 3, 3, DType::kFloat32},
                      {1, 0, 2, DType::kFloat64}};
  }

  std::unique_ptr<VariableStore> Create() {
    auto store = VariableStore::Create(options_);
    EXPECT_OK(store);
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::unique_ptr<VariableStore> Open() {
    auto store = VariableStore::Open(options_);
    EXPECT_OK(store);
    return store.ok() ? *std::move(store) : nullptr;
  }
  // A store that is open at step 0.
  std::unique_ptr<VariableStore> CreateActive() {
    auto store = Create();
    EXPECT_OK(store->Initialize(1));
    EXPECT_OK(store->Activate(0, {InitialAdamPowers(options_.optimizers[0])}));
    return store;
  }

  const testing::TempDir temp_dir_;
  VariableStore::Options options_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_TESTS_UNIT_SERVER_STATE_VARIABLE_STORE_FIXTURE_H_
