#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=forbidden_text

fresh
plant tests/unit/a_test.cc 'clock.Advance(Seconds(1)); asleep(1);\n'
plant tests/e2e/a_test.cc 'absl::SleepFor(x);\n'
plant common/base/mutex.h '// Not absl::Mutex.\n'
plant a.cc '// TODO(#12): more. mkdtemp("XXXXXX") NOLINT(google-x)\n'
plant b.md 'See network/work/ and ~/home/x and $HOME/root/.\n'
expect_clean "innocent text passes"

for call in 'std::this_thread::sleep_for(x)' 'absl::SleepFor(x)' 'usleep(1)' \
    'sleep(1)'; do
  fresh; plant tests/unit/server/a_test.cc "  $call;\n"
  expect_caught "a unit test does not call $call" "a_test.cc:1: a unit test"
done
for note in 'TODO: x' 'TODO x' 'TODO' 'TODO(): x'; do
  fresh; plant a.cc "// $note\n"
  expect_caught "'$note' has no owner" "a.cc:1: a TODO names its owner"
done
fresh; plant CMakeLists.txt '# FIXME\n'
expect_caught "FIXME is no TODO" "CMakeLists.txt:1"
for path in /work/main /root/x /home/me/x; do
  fresh; plant docs/a.md "Run $path/b.\n"
  expect_caught "$path is of one machine" "docs/a.md:1: a path of one machine"
done
for name in Mutex MutexLock CondVar; do
  fresh; plant server/a.h "absl::$name x;\n"
  expect_caught "absl::$name is not for us" "server/a.h:1"
done
fresh; plant CMakeLists.txt 'file(GLOB_RECURSE sources *.cc)\n'
expect_caught "sources are not globbed" "never globbed"
fresh; plant a.cc 'x();  // NOLINT\n'
expect_caught "NOLINT names its check" "a.cc:1: name the check"
finish
