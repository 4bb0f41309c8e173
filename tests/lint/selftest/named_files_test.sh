#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=named_files

fresh
expect_clean "an empty tree"
fresh
plant a/b/c.h '// See b/c.h, a/b/c.h and c.h; and a/d.py.\n'
plant a/d.py '# As a/b/c.h has it; train.py is a user'"'"'s.\nx = "a/e.py"\n'
plant r.md 'See `b/c.h` and train.py, and (a/d.py).\n'
expect_clean "paths from any folder"
fresh
plant r.md 'Write `a/b.h` and `a/b.cc`:\n\n```cpp\n#include "a/b.h"\n```\n'
expect_clean "files that a page shows how to write"

fresh; plant r.md '\nSee a/b.h.\n'
expect_caught "a page's file" "r.md:2: there is no a/b.h"
fresh; plant a/b.h '\nint x;  // as c.cc has it\n'
expect_caught "a file without a folder" "a/b.h:2: there is no c.cc"
fresh; plant a/c.h; plant x.h '// as b/c.h has it\n'
expect_caught "a file in another folder" "x.h:1: there is no b/c.h"
fresh; plant lib.sh; plant t.sh '# shellcheck source=a/lib.sh\n. lib.sh\n'
expect_caught "a shell's source" "t.sh:1: there is no a/lib.sh"
finish
