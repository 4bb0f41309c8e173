#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=links

fresh
plant a.md '# A `b` of c++\n\n[x](a/b.md#the-end-of-2)[y](#a-b-of-c) ![z](a/)\n'
plant a/b.md '## The end, of 2\n\n[up](../a.md) [w](https://x/y.md)\n'
expect_clean "links to pages, folders, headings and other hosts"
fresh
plant a.md '# A\n\n`[x](y.md)`\n\n    [x](y.md)\n\n```\n[x](y.md)\n# B\n```\n'
expect_clean "code has no links"

fresh; plant a/b.md '[x](a/b.md)\n'
expect_caught "a file as the root sees it" "a/b.md:1: there is no a/a/b.md"
fresh; plant a.md '\n[x](#b)\n```\n# B\n```\n'
expect_caught "a heading in code" "a.md:2: a.md has no heading #b"
fresh; plant a.md 'x [x](b.md) [x](b.md#c)\n'; plant b.md '# B\n'
expect_caught "a heading of another page" "a.md:1: b.md has no heading #c"
finish
