#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=clang_format

fresh
plant .clang-format 'BasedOnStyle: Google\n'
plant a.cc 'int a = 1;\n'
plant build/generated.cc 'int   a=1;\n'
expect_clean "what is formatted passes, and build folders are left out"

plant common/b.h 'int   b=1;\n\nint  c=1;\n'
expect_caught "what is not formatted is named once" "common/b.h:1"
finish
