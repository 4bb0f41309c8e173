#ifndef LOCKSTEP_DEPLOY_CLI_SPANS_ADVICE_H_
#define LOCKSTEP_DEPLOY_CLI_SPANS_ADVICE_H_

#include <string>
#include <vector>

#include "deploy/cli/spans/explanation.h"

namespace lockstep::cli {

// Returns what could be done about the steps of `paths`, at most three remedies
// that are about a twentieth of the time or more, and at least one. The one
// that is about the most time comes first. `sums` must have its shares, deaths
// and counts filled in.
std::vector<Advice> AdviceFor(const JobTrace& trace,
                              const std::vector<StepPath>& paths,
                              const Explanation& sums);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SPANS_ADVICE_H_
