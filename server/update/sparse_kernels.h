#ifndef LOCKSTEP_SERVER_UPDATE_SPARSE_KERNELS_H_
#define LOCKSTEP_SERVER_UPDATE_SPARSE_KERNELS_H_

#include <cstddef>

#include "common/numeric/float16.h"
#include "server/update/adaptive_kernels.h"
#include "server/update/slots.h"
#include "server/update/update_kernels.h"

// The update rules of sparse gradients, row by row and in place, in the order
// of operations of TensorFlow's sparse kernels, which is not that of the dense
// ones. Slots are as in the dense kernels. All are defined for float, double
// and Float16.
//
// TensorFlow has separate formulas for rows of one element, which differ in the
// last digits.
namespace lockstep::server {

// A row of the variable with the sum of its gradients.
template <typename T>
struct SparseRow {
  size_t count = 0;  // elements
  const T* gradient = nullptr;
  T* value = nullptr;
  T* slots[kMaxSlots] = {};
};

template <typename T>
void GradientDescentRow(const SparseRow<T>& row, float rate);
template <typename T>
void MomentumRow(const SparseRow<T>& row, float rate, float momentum);
template <typename T>
void NesterovRow(const SparseRow<T>& row, float rate, float momentum);
template <typename T>
void AdagradRow(const SparseRow<T>& row, float rate);
template <typename T>
void RmsPropRow(const SparseRow<T>& row, const RmsPropHyperparameters& hyper);
template <typename T>
void AdadeltaRow(const SparseRow<T>& row, const AdadeltaHyperparameters& hyper);
template <typename T>
void AdagradDaRow(const SparseRow<T>& row,
                  const ProximalHyperparameters& hyper);
template <typename T>
void ProximalGradientDescentRow(const SparseRow<T>& row,
                                const ProximalHyperparameters& hyper);
template <typename T>
void ProximalAdagradRow(const SparseRow<T>& row,
                        const ProximalHyperparameters& hyper);
template <typename T>
void FtrlRow(const SparseRow<T>& row, const FtrlHyperparameters& hyper);

// Adam: adds the gradient to m and v, which must have been decayed. The value
// stays; AdamSweepKernel moves it.
template <typename T>
void AdamSlotsRow(const SparseRow<T>& row, const AdamCoefficients<T>& c);
// Decays and updates only this row.
template <typename T>
void LazyAdamRow(const SparseRow<T>& row, const AdamHyperparameters& hyper);

// slot[i] = slot[i] * beta, for `count` elements.
void AdamDecayKernel(size_t count, float beta, float* slot);
void AdamDecayKernel(size_t count, float beta, double* slot);
void AdamDecayKernel(size_t count, float beta, Float16* slot);

// value -= (alpha m) / (sqrt(v) + epsilon), of elements with and without a
// gradient.
void AdamSweepKernel(size_t count, const AdamCoefficients<float>& c,
                     const float* m, const float* v, float* value);
void AdamSweepKernel(size_t count, const AdamCoefficients<double>& c,
                     const double* m, const double* v, double* value);
void AdamSweepKernel(size_t count, const AdamCoefficients<Float16>& c,
                     const Float16* m, const Float16* v, Float16* value);

// sum[i] = sum[i] + bytes[i]; `bytes` are at any address.
template <typename T>
void AddRow(size_t count, const std::byte* bytes, T* sum);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_SPARSE_KERNELS_H_
