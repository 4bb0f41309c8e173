#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=rooms

# table ROW...: the rooms of the tree, in place of the project's.
LOCKSTEP_ROOMS=$(mktemp)
export LOCKSTEP_ROOMS
trap 'rm -rf "$tree" "$LOCKSTEP_ROOMS"' EXIT
table() { printf '%s\n' "$@" >"$LOCKSTEP_ROOMS"; }
usual() {
  table '# a comment' 'common/text nothing' 'common/base nothing' \
    'common/rpc grpc' 'common/job messages' 'server/step nothing' \
    'server/rpc grpc server/step' '  common/rpc' 'server others server/rpc' \
    'worker/compute/cpu nothing'
}

# include FILE TARGET...: FILE includes just these.
include() {
  local file=$1 text='' target
  shift
  for target in "$@"; do text+="#include \"$target\"\n"; done
  plant "$file" "$text"
}

usual
fresh
include common/text/a.h; include common/base/log.h common/text/a.h
include server/step/engine.cc server/step/engine.h common/base/log.h \
  absl/status/status.h
include server/step/engine.h
include common/rpc/channel.h grpcpp/grpcpp.h
include common/job/codec.cc lockstep/v1/job.pb.h google/protobuf/message.h
include server/rpc/service.h server/step/engine.h common/rpc/channel.h \
  lockstep/v1/a.grpc.pb.h
include server/ps_server.cc server/rpc/service.h
include tests/unit/server/step/engine_test.cc chief/anything.h grpcpp/grpcpp.h
plant worker/compute/cpu/a.cc \
  '#include <cblas.h>\n#include <cuda_runtime.h>\n#include "absl/types/span.h"\n'
expect_clean "what the table allows is allowed"

fresh; include server/step/a.cc server/rpc/b.h
expect_caught "a room includes only rooms of its row" \
  "server/step/a.cc:1: server/step may not include server/rpc"
fresh; include server/step/a.cc tests/testing/temp_dir.h
expect_caught "sources include no test" "may not include tests/testing"
fresh; include server/gate/a.cc absl/types/span.h
expect_caught "a folder that the table lacks is named" "server/gate is no room"
fresh; include server/step/a.cc b.h; include server/step/b.h
expect_caught "paths start at the project root" "write the path from"

fresh; include server/step/a.cc grpcpp/grpcpp.h
expect_caught "a room that sees nothing names no gRPC" "sees nothing"
fresh; include server/step/a.cc lockstep/v1/a.pb.h
expect_caught "nor generated headers" "server/step/a.cc:1"
fresh; include common/job/a.cc lockstep/v1/a.grpc.pb.h
expect_caught "a room that sees messages names no stubs" "sees messages"
fresh; include server/a.cc grpcpp/grpcpp.h
expect_caught "a room that sees others names no gRPC itself" "sees others"

table 'common/rpc grpc' 'server/step nothing common/rpc'
fresh; include server/step/a.cc common/rpc/b.h; include common/rpc/b.h common/rpc/c.h
include common/rpc/c.h grpcpp/grpcpp.h
expect_caught "nor does it reach gRPC by way of another room" "brings in gRPC"
fresh; include server/step/a.cc common/rpc/b.h; include common/rpc/b.h
expect_clean "it may include what is free of it"

table 'server/step nothing common/rpc' 'common/rpc grpc'
fresh
expect_caught "the table has no arrow down" "may include only rooms above it"
table 'server/step anything'
fresh
expect_caught "the table's words are known" "not anything"
usual; echo 'common/rpc grpc' >>"$LOCKSTEP_ROOMS"
expect_caught "a room is listed once" "is listed twice"

usual
fresh; for i in $(seq 27); do include "server/step/a$i.h"; done
expect_caught "a room has at most 26 sources" "has 27 sources"

table 'common/rpc grpc' 'server/step nothing common/rpc'
fresh; plant README.md '`common/rpc` `server/step`'; include common/rpc/a.h
include server/step/a.h
expect_caught "an arrow that nobody uses is named" "does not include common/rpc"
table 'common/rpc grpc'
fresh; plant README.md '`common/rpc`'
expect_caught "a row without its folder is named" "there is no room common/rpc"
table 'common/rpc grpc'
fresh; plant common/README.md '`rpc`'
expect_clean "the nearest README explains a room"
fresh; plant common/README.md '`records`'
expect_caught "a room that no README explains is named" \
  "common/README.md does not say what \`rpc\` is for"

usual
fresh; include worker/compute/cpu/a.cc common/base/b.h
expect_caught "worker/compute includes nothing of ours" "may not include common/base"
fresh; plant worker/compute/cpu/a.cc '#include <spdlog/spdlog.h>\n'
expect_caught "worker/compute includes no library but Abseil" "builds alone"
finish
