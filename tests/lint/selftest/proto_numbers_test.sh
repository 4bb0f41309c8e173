#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=proto_numbers

fresh
plant a.proto "message A {\n  reserved 2, 4 to 6;\n  int32 a = 1;\n  oneof b {\n    int32 c = 3;\n    int32 d = 7 [deprecated = true];\n  }\n  message B {\n    int32 e = 1;\n  }\n}\nenum C {\n  D = 0;\n  E = 1;\n}\nmessage F {}\n"
expect_clean "numbers in use or reserved pass"

fresh; plant a.proto "message A {\n  int32 a = 1;\n  int32 b = 3;  // = 2;\n}\n"
expect_caught "a gap is named" "a.proto:1: A has no number 2;"
fresh; plant a.proto "message A {\n  reserved 1 to 3;\n  int32 a = 6;\n}\n"
expect_caught "what is reserved in part is named" "A has no number 4 5;"
fresh; plant a.proto "enum A {\n  B = 0;\n  C = 2;\n}\n"
expect_caught "a gap of an enum is named" "A has no number 1;"
fresh; plant a.proto "message A {\n  int32 a = 1;\n  message B {\n    int32 b = 2;\n  }\n  int32 c = 2;\n}\n"
expect_caught "a message in a message has numbers of its own" "a.proto:3: B has no number 1;"

finish
