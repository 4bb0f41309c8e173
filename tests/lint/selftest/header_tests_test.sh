#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=header_tests
table=$(mktemp)
trap 'rm -rf "$tree" "$table"' EXIT
export LOCKSTEP_ROOMS=$table
printf '# rooms\nchief/plan nothing\nserver grpc\n' >"$table"

# A header that another room includes.
public() {
  plant "$1" "$2"
  plant server/user.cc "#include \"$1\"\n"
}

fresh
public chief/plan/a.h '#ifdef A(1)\n#endif\n// calls f()\nint F(int i);\n'
plant tests/unit/chief/plan/a_test.cc '#include "chief/plan/a.h"\n'
plant server/b.h 'void G();\n'
plant chief/user.cc '#include "server/b.h"\n'
plant tests/integration/server/b_test.cc '#include "server/b.h"\n'
plant tests/fixture.h 'int H();\n'
expect_clean "tested headers and folders that are no rooms pass"

fresh; public chief/plan/a.h 'struct A { int i; };\n'
plant tests/unit/chief/plan/codec/a_test.cc '#include "chief/plan/a.h"\n'
expect_clean "a test of a room in it tests a header"
fresh; plant chief/plan/a.h 'int F(int i);\n'
plant chief/plan/b.cc '#include "chief/plan/a.h"\n'
plant tests/unit/server/a_test.cc '#include "chief/plan/a.h"\n'
expect_clean "a header that its room keeps to itself passes"

fresh; public chief/plan/a.h 'int F(int i);\n'
expect_caught "an untested public header is named" "chief/plan/a.h:1: no test in"
fresh; public chief/plan/a.h 'int F(int i,\n      int j);\n'
plant chief/plan/b.cc '#include "chief/plan/a.h"\n'
plant tests/unit/server/a_test.cc '#include "chief/plan/a.h"\n'
expect_caught "a source and a test of another room are no tests" "a.h:1: no test"
fresh; public chief/plan/a.h 'class A {\n  virtual int F() = 0;\n};\n'
expect_caught "an interface is named" "a.h:1: no test"
fresh; public chief/plan/a.h 'struct A { int i; };\n'
plant tests/unit/chief/planner/a_test.cc '#include "chief/plan/a.h"\n'
expect_caught "types are named, and a room beside it is not in it" "a.h:1: no test"
finish
