#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=attacks

# row TESTS: a table of one attack, after a section that is no table of attacks.
row() {
  fresh
  plant common/rpc/security/README.md \
    "## Names\n| a | \`NoTest.Name\` |\n## Attacks, and the tests\n| attack | test |\n|---|---|\n| flood | $1 |\n"
  plant tests/unit/a_test.cc "TEST(SuiteTest, Name) {}\nTEST_P(OtherTest,\n       Long) {}\n"
}

row '`SuiteTest.Name`, `OtherTest.Long`'
expect_clean "tests that exist"
row '`OtherTest`'
expect_clean "a whole suite"
row '`SuiteTest.Name`, `SuiteTest.Nam`'
expect_caught "a test that does not exist" "SuiteTest.Nam"
row '`ThirdTest`'
expect_caught "a suite that does not exist" "ThirdTest"
row 'none'
expect_caught "an attack without a test" "no test is named"
row '`SuiteTest.Name`'
sed -i '/Attacks/d' "$tree/common/rpc/security/README.md"
expect_caught "a page without the table" "no table of attacks"
finish
