#ifndef LOCKSTEP_CHIEF_BACKUPS_ARRIVAL_TIMES_H_
#define LOCKSTEP_CHIEF_BACKUPS_ARRIVAL_TIMES_H_

#include <vector>

#include "chief/backups/pass_distribution.h"

namespace lockstep::chief {

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
