#ifndef LOCKSTEP_TESTS_CONFORMANCE_COMPUTE_GRADIENT_CHECK_H_
#define LOCKSTEP_TESTS_CONFORMANCE_COMPUTE_GRADIENT_CHECK_H_

#include <functional>
#include <string>
#include <vector>

namespace lockstep::testing {

// Sum of products: the scalar that stands for a loss, whose derivative with
// respect to `values` is `weights`.
double Dot(const std::vector<double>& values,
           const std::vector<double>& weights);

// Expects `gradient` to be the derivative of `loss` at `point`, by central
// differences in double, to within 1e-6 or a millionth of the larger.
void ExpectGradient(
    const std::function<double(const std::vector<double>&)>& loss,
    const std::vector<double>& point, const std::vector<double>& gradient,
    const std::string& what);

// Expects the same number of values, each within `tolerance`, relative to the
// larger if that exceeds 1.
void ExpectNear(const std::vector<double>& actual,
                const std::vector<double>& expected, double tolerance);

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_CONFORMANCE_COMPUTE_GRADIENT_CHECK_H_
