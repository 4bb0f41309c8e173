#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=sizes

# lines N [TEXT]: TEXT, or "  x();", N times.
lines() {
  local i
  for ((i = 0; i < $1; ++i)); do printf '%s\\n' "${2:-  x();}"; done
}

fresh
plant a.cc "void F() {\n$(lines 59)}\n$(lines 300 '// prose')"
plant b.h "namespace n {\nclass C : public B<int> {\n$(lines 80 '  int a;')};\n}\n"
plant c.cc "constexpr int kTable[] = {\n$(lines 80 '  1,')};\n"
plant d.cc "const char k[] = R\"x({\n$(lines 80 '{(\"')) )x\";\nvoid F() { '{'; }\n"
plant e.h "template <class T, class U = V<T>>\nstruct S {\n$(lines 80 '  T t;')};\n"
plant f.cc "#define M(x) { \\\\\n  if (x) {\n$(lines 70 '// }')int i;\n"
expect_clean "small functions, types, tables and text pass"

fresh; plant a.cc "void F(int a,\n       int b) {\n$(lines 60)}\n"
expect_caught "a function of 61 lines is named" "a.cc:2: function of 61"
fresh; plant a.cc "namespace n {\nint C::F() const {\n  if (a) {\n$(lines 60)  }\n}\n}\n"
expect_caught "a method in a namespace is named" "a.cc:2"
fresh; plant a.h "class C {\n  void F() {\n$(lines 61)  }\n};\n"
expect_caught "a method inside its class is named" "a.h:2"
fresh; plant a.cc "template <class T>\nT F(V<T> v) {\n$(lines 61)}\n"
expect_caught "a template is named" "a.cc:2"
fresh; plant a.cc "C::C(int a)\n    : a_{a},\n      b_(1'000) {\n$(lines 61)}\n"
expect_caught "a constructor is named" "a.cc:3"
fresh; plant a.cc "TEST(A, B) {\n$(lines 61)}\n"
expect_caught "a test is named" "a.cc:1"
fresh; plant a.cc "void F() {\n  c = '\"'; // }\n  s = \"}\"; /* } */\n$(lines 60)}\n"
expect_caught "braces in literals and comments do not count" "a.cc:1"

fresh; plant a.h "$(lines 500 'int i;')"
expect_clean "a file of 500 lines passes"
fresh; plant a.h "$(lines 501 'int i;')"; plant b.h 'int i;\n'
expect_caught "a file of 501 lines is named" "a.h:501: 501 lines"
fresh; plant a.proto "$(lines 501 'message M {}')"; plant b.h 'int i;\n'
expect_caught "a description of 501 lines is named" "a.proto:501: 501 lines"

methods() { printf 'void C::F%s() {\\n%s}\\n' "$1" "$(lines 58)"; }
fresh
plant a/c.cc "$(for i in 1 2 3 4; do methods $i; done)"
plant a/d.cc "namespace n {\n$(methods 5)$(methods 6)}\nvoid F() {\n$(lines 58)}\n"
plant b/c.cc "$(methods 7)"
plant a/c.h "class C {\n  void G() {\n$(lines 30)  }\n};\n"
expect_clean "a class of 392 lines passes, beside another of its name"
plant a/e.cc 'int C<T>::H() {\n'"$(lines 24)"'}\n'
expect_caught "a class that is sliced over files is named" "methods of C have 418"
finish
