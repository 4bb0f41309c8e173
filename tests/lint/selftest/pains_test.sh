#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=pains

# rows TEST: a table of 26 rows, the last of which names TEST.
rows() {
  fresh
  local text=""
  for i in $(seq 25); do text+="| U$i | pain | none |\n"; done
  plant tests/conformance/README.md "$text| U26 | pain | \`$1\` |\n"
  plant tests/unit/a_test.cc "TEST(SuiteTest, Name) {}\nTEST_F(OtherTest,\n       Long) {}\n"
}

rows SuiteTest.Name
expect_clean "a test that exists"
rows OtherTest.Long
expect_clean "a test whose name is on the next line"
rows SuiteTest.Nam
expect_caught "a test that does not exist" "SuiteTest.Nam"
rows SuiteTest.Name
sed -i '/U7/d' "$tree/tests/conformance/README.md"
expect_caught "a pain without a row" "U7 has no row"
finish
