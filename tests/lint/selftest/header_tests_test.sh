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

fresh; public chief/plan/c.h '#include "a.h"  // (types)\nstruct C {\n  int i = Max(1);\n  bool operator==(const C&) const = default;\n};\n'
expect_clean "a header of types alone passes"
fresh; public chief/plan/c.h 'class C {\n  virtual ~C() = default;\n  virtual int F(int i,\n                int j) = 0;\n};\n'
expect_clean "an interface without code passes"
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
fresh; public chief/plan/a.h 'class A {\n  virtual int F() = 0;\n  int G() { return 1; }\n};\n'
expect_caught "an interface with a function of its own is named" "a.h:1: no test"
finish
