#ifndef LOCKSTEP_DEPLOY_CLI_SPANS_ADVICE_H_
#define LOCKSTEP_DEPLOY_CLI_SPANS_ADVICE_H_

#include <string>
#include <vector>

#include "deploy/cli/spans/explanation.h"

namespace lockstep::cli {

// Returns one to three remedies for the steps of `paths`. Each but the first
// concerns at least a twentieth of the time; the one that concerns most of it
// comes first. `sums` must have its shares, deaths and counts filled in.
std::vector<Advice> AdviceFor(const JobTrace& trace,
                              const std::vector<StepPath>& paths,
                              const Explanation& sums);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SPANS_ADVICE_H_
