#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=proto_comments

# proto TEXT: a file that holds TEXT behind the usual head.
proto() {
  fresh
  plant proto/lockstep/v1/a.proto \
    "syntax = \"proto3\";\npackage lockstep.v1;\nimport \"b.proto\";\n$1\n"
}

proto '
// A message.
message A {
  // Before.
  int32 a = 1;
  int32 b = 2;  // Behind.
  /* In a
     block. */
  int32 c = 3;
  reserved 4;
  map<string, int64>
      d = 5;  // Behind the second line.
  // A choice.
  oneof kind {
    string e = 6;  // Inside.
  }
  // An enum.
  enum E {
    ZERO = 0;  // none
  }
}
// Empty.
message B {}
// A service.
service S {
  // A call.
  rpc Call(A) returns (B);
  // Another.
  rpc Other(A)
      returns (B) {}
}'
expect_clean "a commented contract passes"

proto 'message A {}'
expect_caught "a message needs a comment" "message A"
proto '// Too far away.\n\nmessage A {}'
expect_caught "a blank line parts a comment from what follows" "message A"
proto '// A.\nmessage A {\n  int32 a = 1;\n}'
expect_caught "a field needs a comment" "a.proto:6"
proto '// A.\nmessage A {\n  // a\n  int32 a = 1;\n  int32 b = 2;\n}'
expect_caught "one comment does not serve two fields" "int32 b"
proto '// A.\nmessage A {\n  string a = 1 [deprecated = true,\n    b = "//"];\n}'
expect_caught "two slashes in a string are no comment" "string a"
proto '// A.\nenum A {\n  ZERO = 0;\n}'
expect_caught "an enum value needs a comment" "ZERO"
proto 'enum A {\n}'
expect_caught "an enum needs a comment" "enum A"
proto 'service S {\n}'
expect_caught "a service needs a comment" "service S"
proto '// S.\nservice S {\n  rpc Call(A)\n    returns (B);\n}'
expect_caught "an RPC needs a comment" "a.proto:6"
proto '// A.\nmessage A { int32 a = 1; }'
expect_caught "declarations do not share a line" "one declaration per line"
finish
