#!/usr/bin/env bash
# Who may include whom: folders, gRPC, and the arrows main -> role class ->
# services and clients -> cores.
source "$(dirname "$0")/lib.sh"
cd "$1"
lint_files '*.h' '*.cc' '*.cu' '*.cuh' |
  lint_awk include_boundaries.awk | lint_verdict
