#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=rows

# row CELL [TEXT]: a table of one row with this last cell, and the tests that
# there are; TEXT comes before the table.
row() {
  fresh
  plant strategy/rows.md "${2:-}\n\n| row | name | here | test |\n|---|---|---|---|\n| A1, A2 | x | \`None\` | $1 |\n"
  plant tests/unit/strategy/input/streams_test.cc
  plant tests/unit/strategy/CMakeLists.txt "lockstep_add_test(strategy_readme\n  SRCS x.cc)\nadd_test(NAME package_test\n  COMMAND x)\nadd_test(NAME python_\${name}_test\n  COMMAND x)\n"
  plant tests/golden/sync_loop.jsonl
  plant tests/conformance/strategy/a_test.cc "TEST_P(A, Case7One) {}\nTEST_P(A, Case30And31Two) {}\nTEST_P(A, Case95To97Three) {}\n"
  plant tests/unit/strategy/b_test.cc "TEST(BTest, One) {}\nTEST_F(BTest, Two) {}\n"
}

row '`input/streams_test`; `strategy_readme`; `package_test`; `python_a_test`'
expect_clean "a source, and tests of CMake"
row 'values; `golden_sync_loop`; cases 7, 31; cases 95 to 97' 'See `tests/unit/strategy/input`.'
expect_clean "a record, cases and a path"
row ''
expect_clean "a row without a test"
row '`output/streams_test`'
expect_caught "a source in another folder" "A1, A2: there is no test output/streams_test"
row '`strategy_readm`'
expect_caught "a test of CMake whose name only begins so" "no test strategy_readm"
row '`golden_sync`'
expect_caught "a record that does not exist" "no record for golden_sync"
row 'cases 95 to 98'
expect_caught "a case beyond a range" "no case 98"
row 'cases 7, 3'
expect_caught "a case whose number begins another's" "no case 3"
row 'cases 7' 'See `tests/unit/no_such`.'
expect_caught "a path that does not exist" "there is no tests/unit/no_such"
row '' '| 1 | x | `BTest.One`, `Two`; `BTest` |'
expect_clean "tests of C++"
row '' '| 1 | x | `BTest.Three` |'
expect_caught "a test of C++ that does not exist" "no test BTest.Three"
row '' '| 1 | x | `BTest.One`, `Three` |'
expect_caught "a further one of the same suite" "no test BTest.Three"
row '' '| 1 | x | `CTest` |'
expect_caught "a suite that does not exist" "no test CTest."
finish
