#ifndef LOCKSTEP_DEPLOY_CLI_SPANS_EXPLANATION_TEXT_H_
#define LOCKSTEP_DEPLOY_CLI_SPANS_EXPLANATION_TEXT_H_

#include <string>

#include "deploy/cli/spans/explanation.h"

namespace lockstep::cli {

// Returns the explanation in at most about ten lines, for people. Its lines are
// not wrapped.
std::string ExplanationText(const Explanation& explanation);

// Returns it as one JSON object: times in seconds, shares in [0, 1].
std::string ExplanationJson(const Explanation& explanation);

// Returns the advice as a sentence without its full stop.
std::string AdviceText(const Advice& advice, const Explanation& explanation);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SPANS_EXPLANATION_TEXT_H_
