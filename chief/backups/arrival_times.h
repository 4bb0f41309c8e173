#ifndef LOCKSTEP_CHIEF_BACKUPS_ARRIVAL_TIMES_H_
#define LOCKSTEP_CHIEF_BACKUPS_ARRIVAL_TIMES_H_

#include <vector>

#include "chief/backups/pass_distribution.h"

namespace lockstep::chief {

// Expected times of arrival, in seconds, of passes that begin together: element
// i is the time at which all but i of the workers have ended their pass, the
// order statistic n - i of n independent passes. The result has `most_missing`
// + 1 elements, or as many as there are workers.
//
// Times beyond `longest` (seconds), and times that are only known to be longer
// than any seen, count as `longest`.
//
// The number of workers that have not ended at a time is a sum of independent
// trials of unequal probabilities. Its distribution follows by adding one
// worker after the other, and the expectation from that for each bin, without
// random numbers. Takes time in proportion to bins * workers * most_missing at
// most.
std::vector<double> ExpectedArrivals(
    const std::vector<PassDistribution>& workers, int most_missing,
    double longest);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_BACKUPS_ARRIVAL_TIMES_H_
