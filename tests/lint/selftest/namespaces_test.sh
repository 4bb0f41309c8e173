#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=namespaces

fresh
plant chief/job/a.h "namespace lockstep::chief {\nclass A;\n}\n"
plant worker/compute/a.cc "namespace lockstep::worker::cpu {\n}\n"
plant deploy/cli/run/a.cc "namespace lockstep::cli {\nnamespace {\n}\n}\n"
plant common/a.h "namespace lockstep {\n}\nnamespace lockstep::testing {\n}\n"
plant tests/a.cc "namespace lockstep {\n}\n"
expect_clean "each program in its own namespace passes"

fresh; plant server/a.h "namespace lockstep {\nclass A;\n}\n"
expect_caught "a server's class beside those of common is named" \
  "server/a.h:1: namespace lockstep; code of server belongs in lockstep::server"
fresh; plant worker/a.h "\nnamespace lockstep::workers {\n}\n"
expect_caught "a namespace that only begins alike is named" "worker/a.h:2"
fresh; plant deploy/cli/a.cc "namespace lockstep::chief { class A; }\n"
expect_caught "a class of another program is named" "deploy/cli/a.cc:1"
fresh; plant common/a.cc "namespace lockstep::server {\n}\n"
expect_caught "code of a program in common is named" "common/a.cc:1"

fresh
plant deploy/cli/a.cc "namespace lockstep::cli {\nnamespace {\nclass A {\n};\n}  // namespace\nclass B {\n};\n}  // namespace lockstep::cli\n"
plant deploy/cli/b.cc "namespace lockstep::cli {\nclass B;\nnamespace {\nclass A {\n};\n}  // namespace\nclass B::C {\n};\n}  // namespace lockstep::cli\n"
plant common/b.h "namespace lockstep {\nnamespace internal {\nclass B {\n};\n}  // namespace internal\n}  // namespace lockstep\n"
expect_clean "unnamed namespaces, declarations and other namespaces pass"
fresh
plant deploy/cli/a.h "namespace lockstep::cli {\nclass Tail {\n};\n}  // namespace lockstep::cli\n"
plant deploy/cli/b.h "namespace lockstep::cli {\n\nclass Tail final : public A {\n};\n}  // namespace lockstep::cli\n"
expect_caught "two classes of one name are named" \
  "deploy/cli/b.h:3: lockstep::cli::Tail is defined in deploy/cli/a.h:2, too; rename one"
fresh
plant common/a.h "namespace lockstep {\nnamespace {\n}  // namespace\nstruct S {\n};\n}  // namespace lockstep\n"
plant common/b.cc "namespace lockstep {\nstruct S {\n};\n}  // namespace lockstep\n"
expect_caught "a struct of a source file, too" "common/b.cc:2"

finish
