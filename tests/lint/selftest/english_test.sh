#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=english

# words N: a comment of N words, ten a line.
words() {
  local i
  for ((i = 0; i < $1 / 10; ++i)); do
    printf '%s\\n' '// a b c d e f g h i j'
  done
}

fresh
plant a.h '// Returns what the file holds.\nint F();  // > 0\n'
plant b.cc "$(words 200)// What is left.\nint i;  // what it counts\n"
plant c.cc '// Prints "who waits", or `nobody`.\nf("what // what who");\n'
plant d.cc 'f(R"(\n// who and what and what\n)");\n// Of-the-shelf parts.\n'
plant e.cc "f(\"a \\\\\"b\", '/'); // A part of it. Often.\n"
plant f.proto '// The whole of it: a model.\nmessage M {}\n'
expect_clean "nouns, quoted words and strings pass"

fresh; plant a.cc '// Of the ps, the index.\n'
expect_caught "a comment that begins with Of is named" "a.cc:1: a sentence"
fresh; plant a.cc '\nint i;  // Of the ps.\n'
expect_caught "a comment behind code, too" "a.cc:2: a sentence"
fresh; plant a.cc '// Counts steps. Of a ps, its own.\n'
expect_caught "a later sentence, too" "a.cc:1: a sentence"

for word in who Whoever whom nobody somebody Everybody; do
  fresh; plant a.proto "message M {\n  int32 a = 1;  // $word waits\n}\n"
  expect_caught "$word is named" "a.proto:2: \"${word,,}\""
done

for word in whoever Nobody somebody everybody; do
  fresh; plant a.md "# A\n\n| \`x\` | $word waits |\n"
  expect_caught "$word is named in pages" "a.md:3: \"${word,,}\""
done
fresh; plant a.md '# A\n\nOf the ps, the index.\n'
expect_caught "a page's sentence that begins with Of is named" "a.md:3: a sent"
fresh; plant a.md '- It counts. Of a ps, its own.\n'
expect_caught "a later sentence of a page, too" "a.md:1: a sentence"
fresh
plant a.md 'Users who wait. `nobody` and "nobody".\n```\nOf nobody\n```\nOften.\n'
expect_clean "code, quoted words and readers pass"

fresh; plant a.h '// What it is.\n// Whatever it does.\n'
expect_caught "a second what in few words is named" "a.h:2: \"what\" stands 2"
fresh; plant a.cu "$(words 290)// what\n// what\n// what\n"
expect_caught "one per 100 words passes, one more is named" "a.cu:32"
fresh; plant a.h '// what\n'; plant b.h '// what\n// what\n'
expect_caught "each file counts for itself" "b.h:2"

fresh; plant a.cc 'TEST(ATest, NobodyWaits) {\n'
expect_caught "nobody in a test's name is named" "a.cc:1: the test's name"
fresh; plant a.cc '\nTEST_F(ATest,\n       ItTellsWho) {\n'
expect_caught "a name on a line of its own, too" "a.cc:2: the test's name"
fresh; plant a.cc 'TEST(ATest, WholeFilesOfWorkersWhoseLeaseEnds) {\n'
expect_clean "names with Whole and Whose pass"

fresh; plant GLOSSARY.md '| part | A slice. | `common/plan`, `a` |\n'
plant common/plan/plan.h '\n'
expect_clean "a glossary whose places exist passes"
fresh; plant GLOSSARY.md '# G\n| part | `/metrics` | `common/plan/plan.h` |\n'
expect_caught "a place that is gone is named" "GLOSSARY.md:2: there is no common"
finish
