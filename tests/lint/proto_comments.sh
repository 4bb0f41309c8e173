#!/usr/bin/env bash
# Every message, field, oneof, enum, enum value, service and RPC of the contract
# has a comment before it or behind it.
source "$(dirname "$0")/lib.sh"
cd "$1"
lint_files '*.proto' | lint_awk proto_comments.awk | lint_verdict
