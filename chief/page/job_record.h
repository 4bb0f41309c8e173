#ifndef LOCKSTEP_CHIEF_PAGE_JOB_RECORD_H_
#define LOCKSTEP_CHIEF_PAGE_JOB_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chief/page/curve.h"
#include "chief/page/step_times.h"
#include "chief/page/story.h"
#include "chief/summary/summary_curves.h"

namespace lockstep::chief {

// JobRecord is the past of a job as its page shows it: curves over all steps,
// of the job (as SummaryCurves names them) and of its evaluator ("evaluator/"
// before the name), the quantiles of step times, and the story. A job has at
// most kMostCurves curves, so a record takes 600 KB at most.
//
// Threads: not thread-safe.
class JobRecord {
 public:
  static constexpr size_t kMostCurves = 32;
  static constexpr char kMedian[] = "step_seconds_median";
  static constexpr char kP99[] = "step_seconds_p99";
  static constexpr char kEvaluator[] = "evaluator/";

  // Samples must come in the order of time. `times`: of the steps since the
  // sample before; may be null.
  void Add(const SummarySample& sample, const StepTimes::Quantiles* times);

  // Removes the points after `step`, where training begins, from all curves. A
  // curve that gets a new point removes later ones by itself, but the curves of
  // the evaluator may get none.
  void GoBack(int64_t step);

  // The points of a curve; empty if there is none of that name.
  std::vector<CurvePoint> Points(const std::string& name) const;
  std::vector<StoryEvent> Events() const { return story_.Events(); }

  // Returns {"job": ..., "curves": {NAME: {"stride": samples of a point,
  // "points": [[step, unix seconds, value], ...]}}, "story": [[unix seconds,
  // kind, text], ...]}.
  std::string ToJson(const std::string& job) const;

  // Parses the output of ToJson().
  //
  //   kInvalidArgument     not such a text
  //   kFailedPrecondition  of a job with another name
  static absl::StatusOr<JobRecord> FromJson(absl::string_view text,
                                            const std::string& job);

 private:
  void AddTo(const std::string& name, const CurvePoint& point);

  SummaryCurves summary_;
  std::map<std::string, Curve> curves_;
  Story story_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PAGE_JOB_RECORD_H_
