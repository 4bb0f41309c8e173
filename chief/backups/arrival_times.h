#ifndef LOCKSTEP_CHIEF_BACKUPS_ARRIVAL_TIMES_H_
#define LOCKSTEP_CHIEF_BACKUPS_ARRIVAL_TIMES_H_

#include <vector>

#include "chief/backups/pass_distribution.h"

namespace lockstep::chief {

// Returns the expected times of arrival, in seconds, of passes that begin
// together. Element i is the time at which all but i of the n workers have
// ended their pass: the order statistic n - i of n independent passes. The
// result has `most_missing` + 1 elements, or n if that is less.
//
// A time counts as at most `longest`, in seconds. A time of which only a lower
// bound is known counts as `longest`.
//
// The number of workers that have not ended at a given time is a sum of
// independent trials of unequal probabilities. Its distribution is built by
// adding the workers one by one, without random numbers, and the expectation is
// summed from it over the bins. Takes time in proportion to bins * workers *
// most_missing at most.
std::vector<double> ExpectedArrivals(
    const std::vector<PassDistribution>& workers, int most_missing,
    double longest);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_BACKUPS_ARRIVAL_TIMES_H_
