#ifndef LOCKSTEP_TESTS_TESTING_PROCESS_SEARCH_H_
#define LOCKSTEP_TESTS_TESTING_PROCESS_SEARCH_H_

#include <string>
#include <vector>

namespace lockstep::testing {

// Returns the arguments of each process of this machine, except this one, that
// has `text` in its arguments or its environment. A path or a port of the test
// finds the processes that the test has left. Zombies are not among them.
std::vector<std::string> ProcessesWith(const std::string& text);

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_PROCESS_SEARCH_H_
