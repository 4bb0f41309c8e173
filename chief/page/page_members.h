#ifndef LOCKSTEP_CHIEF_PAGE_PAGE_MEMBERS_H_
#define LOCKSTEP_CHIEF_PAGE_PAGE_MEMBERS_H_

#include <cstddef>
#include <string>

#include "chief/page/page.h"

namespace lockstep::chief {

// Parts of the page, each a <section> with an id; "" if a part would be empty.

// One line for each worker, those in trouble first; at most `most` lines, and
// one for the sum of the others.
std::string RenderWorkers(const PageContents& contents, size_t most);

// Servers and the evaluator, with memory and load.
std::string RenderServers(const PageContents& contents);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PAGE_PAGE_MEMBERS_H_
