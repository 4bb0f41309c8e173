#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=include_boundaries

# include FILE TARGET...: FILE includes just these.
include() {
  local file=$1 text='' target
  shift
  for target in "$@"; do text+="#include \"$target\"\n"; done
  plant "$file" "$text"
}

fresh
include common/dtype.h absl/status/status.h
include common/grpc_status.h grpcpp/grpcpp.h common/dtype.h
include server/accumulator.cc server/accumulator.h common/dtype.h
include server/accumulator.h
include server/parameter_service.cc grpcpp/grpcpp.h lockstep/v1/a.grpc.pb.h \
  server/accumulator.h common/grpc_status.h
include server/parameter_service.h
include server/ps_server.cc server/parameter_service.h server/accumulator.h
include server/ps_server.h
include server/ps_server_main.cc server/ps_server.h
include worker/worker_main.cc chief/chief.h
include worker/hosted_chief.cc chief/chief.h
include chief/chief.h
include worker/compute/backend.cc worker/compute/backend.h absl/types/span.h
include worker/compute/backend.h
include tests/unit/server/accumulator_test.cc server/accumulator.h chief/chief.h
include deploy/lockstep/launcher.cc common/dtype.h
expect_clean "the allowed arrows are allowed"

fresh; include server/a.cc worker/b.h
expect_caught "server does not include worker" "server/a.cc:1"
fresh; include worker/a.cc chief/b.h
expect_caught "worker does not include chief" "may not include chief/b.h"
fresh; include chief/a.cc server/b.h
expect_caught "chief does not include server" "may not include server/b.h"
fresh; include common/a.h server/b.h
expect_caught "common includes no role" "may not include server/b.h"
fresh; include deploy/lockstep/a.cc chief/b.h
expect_caught "deploy includes no role" "may not include chief/b.h"
fresh; include common/a.cc tests/testing/temp_dir.h
expect_caught "sources include no test" "may not include tests/"
fresh; include worker/worker_main.cc server/a.h
expect_caught "the worker's exception is for the chief alone" "server/a.h"

fresh; include server/a.cc grpcpp/grpcpp.h
expect_caught "a core does not include gRPC" "does not know the wire"
fresh; include common/job/a.h lockstep/v1/job.pb.h
expect_caught "a core does not include generated headers" "common/job/a.h:1"
fresh; include server/a.cc google/protobuf/text_format.h
expect_caught "a core does not include protobuf" "server/a.cc:1"
fresh; include chief/grpc_a.h grpcpp/grpcpp.h
expect_caught "the name grpc_* counts in common alone" "chief/grpc_a.h:1"

fresh; include server/a.cc server/parameter_service.h
expect_caught "a core does not include a service" "an arrow points up"
fresh; include worker/a.cc worker/b_client.h
include worker/b_client.h worker/c_stub.h
include worker/c_stub.h grpcpp/grpcpp.h
expect_caught "a core does not reach gRPC through a client" "worker/a.cc:1"
fresh; include worker/a.cc worker/b_client.h
include worker/b_client.h absl/status/status.h
expect_clean "a core may include a client that is a pure interface"
fresh; include server/x_service.cc server/ps_server.h
expect_caught "a service does not include the role class" "an arrow points up"
fresh; include chief/chief.cc chief/chief_main.h
expect_caught "nothing includes a main" "an arrow points up"

fresh; include worker/compute/a.cc common/b.h
expect_caught "worker/compute includes nothing of ours" "builds alone"
fresh; plant worker/compute/a.cc '#include <spdlog/spdlog.h>\n'
expect_caught "worker/compute includes no library but Abseil" "builds alone"
fresh; plant worker/compute/a.cc \
  '#include <cblas.h>\n#include <cuda_runtime.h>\n#include <vector>\n'
expect_clean "worker/compute includes cblas, CUDA and the standard library"

fresh; include server/a.cc b.h; include server/b.h absl/types/span.h
expect_caught "paths start at the project root" "write the path from"
finish
