#include "server/update/sparse_kernels.h"

#include "common/numeric/element_operations.h"
#include "common/numeric/vector_clones.h"

// Compiled with -ffp-contract=off, as all kernels. Parentheses and factors have
// the order of TensorFlow's sparse kernels, which differs from that of the
// dense ones; a column is a row of one element.
namespace lockstep::server {
namespace {

template <typename T>
size_t GroupedElements(const SparseRow<T>& row) {
  return row.count / kGroup * kGroup;
}

template <typename T>
bool IsColumn(const SparseRow<T>& row) {
  return row.count == 1;
}

template <typename T>
T Clamp(T x, T low, T high) {
  if (x < low) return low;
  return x > high ? high : x;
}

template <typename T>
LOCKSTEP_INLINE void Sweep(size_t count, const AdamCoefficients<T>& c,
                           const T* m, const T* v, T* value) {
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    value[i] = value[i] - (c.alpha * m[i]) / (Root(v[i]) + c.epsilon);
  }
}

// The proximal step of an element. TensorFlow divides a column in float64.
template <typename T>
LOCKSTEP_INLINE T ProximalOfRow(const SparseRow<T>& row, size_t i, T rate, T l1,
                                T l2) {
  const T w = row.value[i];
  const T g = row.gradient[i];
  if (!IsColumn(row)) return ProximalStep(w, g, rate, l1, l2);
  return FromFloat64<T>(ToFloat64(ProximalValue(w, g, rate, l1)) /
                        (1.0 + ToFloat64(l2 * rate)));
}

// In TensorFlow's formula for a column only the sum of the gradients is in the
// type of the variable; the rest is float64.
template <typename T>
LOCKSTEP_INLINE void AdagradDaColumn(const SparseRow<T>& row,
                                     const ProximalHyperparameters& hyper) {
  const T rate = FromFloat<T>(hyper.learning_rate);
  const double step = hyper.step;
  const double l1 = ToFloat64(FromFloat<T>(hyper.l1));
  const double l2 = ToFloat64(FromFloat<T>(hyper.l2));
  const T step_rate = FromFloat<T>(static_cast<float>(hyper.step)) * rate;
  const T g = row.gradient[0];
  T& sum = row.slots[0][0];
  T& squares = row.slots[1][0];
  sum = sum + g;
  squares = FromFloat64<T>(ToFloat64(squares) + ToFloat64(g) * ToFloat64(g));
  const double whole = ToFloat64(sum);
  const double steered = l1 > 0 ? Shrunk(whole, step * l1) : whole;
  row.value[0] =
      FromFloat64<T>(-(ToFloat64(rate) * steered) /
                     (l2 * ToFloat64(step_rate) + ToFloat64(Root(squares))));
}

}  // namespace

template <typename T>
void AddRow(size_t count, const std::byte* bytes, T* sum) {
  for (size_t i = 0; i < count; ++i) {
    sum[i] = sum[i] + LoadElement<T>(bytes, i);
  }
}

template <typename T>
void GradientDescentRow(const SparseRow<T>& row, float rate) {
  // TensorFlow adds the product with the negative rate.
  const T minus_rate = -FromFloat<T>(rate);
  for (size_t i = 0; i < row.count; ++i) {
    row.value[i] = row.value[i] + row.gradient[i] * minus_rate;
  }
}

template <typename T>
void MomentumRow(const SparseRow<T>& row, float rate, float momentum) {
  for (size_t i = 0; i < row.count; ++i) {
    T& s = row.slots[0][i];
    s = s * FromFloat<T>(momentum) + row.gradient[i];
    row.value[i] = row.value[i] - s * FromFloat<T>(rate);
  }
}

template <typename T>
void NesterovRow(const SparseRow<T>& row, float rate, float momentum) {
  const T eta = FromFloat<T>(rate);
  const T mu = FromFloat<T>(momentum);
  for (size_t i = 0; i < row.count; ++i) {
    T& s = row.slots[0][i];
    s = s * mu + row.gradient[i];
    // The dense kernel computes (s * mu) * eta.
    row.value[i] = row.value[i] - (eta * row.gradient[i] + (eta * mu) * s);
  }
}

template <typename T>
void AdagradRow(const SparseRow<T>& row, float rate) {
  const T eta = FromFloat<T>(rate);
  const size_t grouped = GroupedElements(row);
  for (size_t i = 0; i < row.count; ++i) {
    const T g = row.gradient[i];
    T& s = row.slots[0][i];
    s = s + g * g;
    // A column divides by the root; a wider row multiplies by its reciprocal.
    const T change = IsColumn(row) ? (eta * g) / Root(s)
                                   : (g * eta) * ReciprocalRoot(s, i < grouped);
    row.value[i] = row.value[i] - change;
  }
}

template <typename T>
void RmsPropRow(const SparseRow<T>& row, const RmsPropHyperparameters& hyper) {
  const T rate = FromFloat<T>(hyper.learning_rate);
  const T decay = FromFloat<T>(hyper.decay);
  const T one_minus_decay = FromFloat<T>(1) - decay;
  const T epsilon = FromFloat<T>(hyper.epsilon);
  T* momentum = row.slots[hyper.centered ? 2 : 1];
  const size_t grouped = GroupedElements(row);
  for (size_t i = 0; i < row.count; ++i) {
    const T g = row.gradient[i];
    T& r = row.slots[0][i];
    // The dense kernel adds (g * g - r) * (1 - decay) to r.
    r = r * decay + (g * g) * one_minus_decay;
    T denominator = r + epsilon;
    if (hyper.centered) {
      T& m = row.slots[1][i];
      m = m * decay + g * one_minus_decay;
      denominator = denominator - m * m;
    }
    T& q = momentum[i];
    q = q * FromFloat<T>(hyper.momentum) +
        (ReciprocalRoot(denominator, i < grouped) * rate) * g;
    row.value[i] = row.value[i] - q;
  }
}

template <typename T>
void AdadeltaRow(const SparseRow<T>& row,
                 const AdadeltaHyperparameters& hyper) {
  const T rho = FromFloat<T>(hyper.rho);
  const T one_minus_rho = FromFloat<T>(1) - rho;
  const T epsilon = FromFloat<T>(hyper.epsilon);
  const size_t grouped = GroupedElements(row);
  for (size_t i = 0; i < row.count; ++i) {
    const T g = row.gradient[i];
    T& s = row.slots[0][i];
    T& u = row.slots[1][i];
    s = s * rho + (g * g) * one_minus_rho;
    const T d =
        (Root(u + epsilon) * ReciprocalRoot(s + epsilon, i < grouped)) * g;
    // Before u is updated: d depends on the old one.
    row.value[i] = row.value[i] - d * FromFloat<T>(hyper.learning_rate);
    u = u * rho + (d * d) * one_minus_rho;
  }
}

template <typename T>
void FtrlRow(const SparseRow<T>& row, const FtrlHyperparameters& hyper) {
  const T rate = FromFloat<T>(hyper.learning_rate);
  const T power = FromFloat<T>(hyper.power);
  const T l1 = FromFloat<T>(hyper.l1);
  const T two_l2 = FromFloat<T>(2) * FromFloat<T>(hyper.l2);
  const T shrinkage = FromFloat<T>(hyper.shrinkage);
  // A column always takes the general power.
  const bool root = !IsColumn(row) && power == FromFloat<T>(-0.5f);
  const auto raise = [&](T x) { return root ? Root(x) : Power(x, -power); };
  for (size_t i = 0; i < row.count; ++i) {
    const T g = row.gradient[i];
    T& w = row.value[i];
    T& n = row.slots[0][i];
    T& z = row.slots[1][i];
    const T shrunk =
        shrinkage > FromFloat<T>(0) ? g + (FromFloat<T>(2) * shrinkage) * w : g;
    const T new_n = n + g * g;
    const T new_power = raise(new_n);
    const T sigma = (new_power - raise(n)) / rate;
    // The same sum with other rounding.
    z = IsColumn(row) ? (z + shrunk) - sigma * w : z + (shrunk - sigma * w);
    w = (Clamp(z, -l1, l1) - z) / (new_power / rate + two_l2);
    n = new_n;
  }
}

template <typename T>
void ProximalGradientDescentRow(const SparseRow<T>& row,
                                const ProximalHyperparameters& hyper) {
  const T rate = FromFloat<T>(hyper.learning_rate);
  const T l1 = FromFloat<T>(hyper.l1);
  const T l2 = FromFloat<T>(hyper.l2);
  for (size_t i = 0; i < row.count; ++i) {
    row.value[i] = ProximalOfRow(row, i, rate, l1, l2);
  }
}

template <typename T>
void ProximalAdagradRow(const SparseRow<T>& row,
                        const ProximalHyperparameters& hyper) {
  const T eta = FromFloat<T>(hyper.learning_rate);
  const T l1 = FromFloat<T>(hyper.l1);
  const T l2 = FromFloat<T>(hyper.l2);
  const size_t grouped = GroupedElements(row);
  for (size_t i = 0; i < row.count; ++i) {
    const T g = row.gradient[i];
    T& s = row.slots[0][i];
    s = s + g * g;
    const T rate =
        IsColumn(row) ? eta / Root(s) : eta * ReciprocalRoot(s, i < grouped);
    row.value[i] = ProximalOfRow(row, i, rate, l1, l2);
  }
}

template <typename T>
void AdagradDaRow(const SparseRow<T>& row,
                  const ProximalHyperparameters& hyper) {
  if (IsColumn(row)) return AdagradDaColumn(row, hyper);
  const T step = FromFloat<T>(static_cast<float>(hyper.step));
  const T step_rate = step * FromFloat<T>(hyper.learning_rate);
  const T l1 = FromFloat<T>(hyper.l1);
  const T l2 = FromFloat<T>(hyper.l2);
  for (size_t i = 0; i < row.count; ++i) {
    const T g = row.gradient[i];
    T& sum = row.slots[0][i];
    T& squares = row.slots[1][i];
    sum = sum + g;
    squares = squares + g * g;
    // The dense rule multiplies threshold and decay by the step instead.
    const T mean = sum / step;
    const T steered = l1 > FromFloat<T>(0) ? Shrunk(mean, l1) : mean;
    row.value[i] = -steered / (l2 + Root(squares) / step_rate);
  }
}

template <typename T>
void AdamSlotsRow(const SparseRow<T>& row, const AdamCoefficients<T>& c) {
  for (size_t i = 0; i < row.count; ++i) {
    const T g = row.gradient[i];
    T& m = row.slots[0][i];
    T& v = row.slots[1][i];
    m = m + g * c.one_minus_beta1;
    v = v + (g * g) * c.one_minus_beta2;
  }
}

template <typename T>
void LazyAdamRow(const SparseRow<T>& row, const AdamHyperparameters& hyper) {
  const AdamCoefficients<T> c = MakeAdamCoefficients<T>(hyper);
  for (size_t i = 0; i < row.count; ++i) {
    row.slots[0][i] = row.slots[0][i] * FromFloat<T>(hyper.beta1);
    row.slots[1][i] = row.slots[1][i] * FromFloat<T>(hyper.beta2);
  }
  AdamSlotsRow(row, c);
  Sweep(row.count, c, row.slots[0], row.slots[1], row.value);
}

// Every kernel, for one element type.
#define LOCKSTEP_DEFINE_KERNELS(T)                                             \
  template void AddRow<T>(size_t, const std::byte*, T*);                       \
  template void GradientDescentRow<T>(const SparseRow<T>&, float);             \
  template void MomentumRow<T>(const SparseRow<T>&, float, float);             \
  template void NesterovRow<T>(const SparseRow<T>&, float, float);             \
  template void AdagradRow<T>(const SparseRow<T>&, float);                     \
  template void RmsPropRow<T>(const SparseRow<T>&,                             \
                              const RmsPropHyperparameters&);                  \
  template void AdadeltaRow<T>(const SparseRow<T>&,                            \
                               const AdadeltaHyperparameters&);                \
  template void ProximalGradientDescentRow<T>(const SparseRow<T>&,             \
                                              const ProximalHyperparameters&); \
  template void ProximalAdagradRow<T>(const SparseRow<T>&,                     \
                                      const ProximalHyperparameters&);         \
  template void AdagradDaRow<T>(const SparseRow<T>&,                           \
                                const ProximalHyperparameters&);               \
  template void FtrlRow<T>(const SparseRow<T>&, const FtrlHyperparameters&);   \
  template void AdamSlotsRow<T>(const SparseRow<T>&,                           \
                                const AdamCoefficients<T>&);                   \
  template void LazyAdamRow<T>(const SparseRow<T>&,                            \
                               const AdamHyperparameters&);                    \
  LOCKSTEP_CLONES void AdamDecayKernel(size_t count, float beta, T* slot) {    \
    const T factor = FromFloat<T>(beta);                                       \
    LOCKSTEP_INDEPENDENT                                                       \
    for (size_t i = 0; i < count; ++i) slot[i] = slot[i] * factor;             \
  }                                                                            \
  LOCKSTEP_CLONES void AdamSweepKernel(size_t count,                           \
                                       const AdamCoefficients<T>& c,           \
                                       const T* m, const T* v, T* value) {     \
    Sweep(count, c, m, v, value);                                              \
  }

LOCKSTEP_DEFINE_KERNELS(float)
LOCKSTEP_DEFINE_KERNELS(double)
LOCKSTEP_DEFINE_KERNELS(Float16)

}  // namespace lockstep::server
