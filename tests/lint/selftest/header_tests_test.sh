#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=header_tests
table=$(mktemp)
undone=$(mktemp)
trap 'rm -rf "$tree" "$table" "$undone"' EXIT
export LOCKSTEP_ROOMS=$table LOCKSTEP_HEADERS_UNDONE=$undone
printf '# rooms\nchief/plan nothing\nserver grpc\n' >"$table"

fresh
plant chief/plan/a.h '#ifdef A(1)\n#endif\n// calls f()\nint F(int i);\n'
plant tests/unit/chief/plan/a_test.cc '#include "chief/plan/a.h"\n'
plant server/b.h 'void G();\n'
plant tests/integration/server/b_test.cc '#include "server/b.h"\n'
plant chief/plan/c.h '#include "a.h"  // (types)\nstruct C {\n  int i = 0;\n  bool operator==(const C&) const = default;\n};\n'
plant tests/fixture.h 'int H();\n'
expect_clean "tested headers, types and folders that are no rooms pass"

fresh; plant chief/plan/a.h 'int F(int i);\n'
expect_caught "an untested header is named" "chief/plan/a.h:1: no test in"
fresh; plant chief/plan/a.h 'int F(int i);\n'
plant chief/plan/b.cc '#include "chief/plan/a.h"\n'
plant tests/unit/server/a_test.cc '#include "chief/plan/a.h"\n'
expect_caught "a source and a test of another room are no tests" "a.h:1: no test"

printf '# done later\nchief/plan/a.h\n' >"$undone"
fresh; plant chief/plan/a.h 'int F(int i);\n'
expect_clean "a header of the list passes"
fresh; plant chief/plan/a.h 'int F(int i);\n'
plant tests/unit/chief/plan/a_test.cc '#include "chief/plan/a.h"\n'
expect_caught "a header of the list that is tested is named" ":2: chief/plan/a.h is"
fresh; plant chief/plan/b.h 'struct B {};\n'
expect_caught "a header of the list that is gone is named" ":2: there is no chief"
finish
