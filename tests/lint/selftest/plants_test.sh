#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=plants

# row LINE: a table with one plant, beside the code and the test that it names.
row() {
  fresh
  plant tests/plants/a.txt "# name | file | edit | program | tests\n\n$1\n"
  plant common/a.cc "int Limit() { return 5; }\n"
  plant tests/CMakeLists.txt "lockstep_add_test(a_test\n  SRCS a_test.cc)\nlockstep_add_test(c_test PROGRAM shared_tests)\n"
  plant tests/a_test.cc "TEST(SuiteTest, Name) {}\nTEST_P(OtherTest,\n       Long) {}\n"
}

row 'big | common/a.cc | s/5/500/ | a_test | SuiteTest.Name:All/OtherTest.Lo*'
expect_clean "an edit that changes its file, and tests that exist"
row 'big | common/a.cc | s/5/500/ | a_test more | Suite*'
expect_clean "a suite by its beginning, and a further target"
row 'big | common/a.cc | s/5/500/ | shared_tests | SuiteTest.Name'
expect_clean "a program that several tests share"
row 'big | common/a.cc | s/6/500/ | a_test | SuiteTest.Name'
expect_caught "an edit that changes nothing" "changes nothing"
row 'big | common/b.cc | s/5/500/ | a_test | SuiteTest.Name'
expect_caught "a file that does not exist" "no file common/b.cc"
row 'big | common/a.cc | s/5/500/ | b_test | SuiteTest.Name'
expect_caught "a program that does not exist" "no test program b_test"
row 'big | common/a.cc | s/5/500/ | a_test | SuiteTest.Nam'
expect_caught "a test that does not exist" "no test SuiteTest.Nam"
row 'big | common/a.cc | s/5/500/'
expect_caught "a row without tests" "expected name"
finish
