#include "worker/compute/backend/operation_checks.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {
namespace {

constexpr char kMatMul[] = "MatMul";
// Bounds stride, padding and pooling windows, so that sums of a size and two
// paddings cannot overflow.
constexpr int64_t kMaxMove = 1 << 20;  // pixels

std::string Describe(ElementType type, const Shape& shape) {
  return absl::StrCat(ElementTypeName(type), " ", ShapeText(shape));
}

absl::Status Mismatch(const char* operation, const Argument& argument,
                      const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat(
      operation, ": ", argument.name, " must be ", expected, ", got ",
      Describe(argument.tensor.type(), argument.tensor.shape())));
}

// The shape must be possible, and a tensor with elements must have memory.
absl::Status CheckForm(const char* operation, const Argument& argument) {
  absl::StatusOr<int64_t> count = CountElements(argument.tensor.shape());
  if (!count.ok()) return Mismatch(operation, argument, "a possible shape");
  if (*count > 0 && argument.tensor.raw() == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(operation, ": ", argument.name, " has no memory"));
  }
  return absl::OkStatus();
}

absl::Status CheckFloatType(const char* operation, const Argument& argument) {
  const ElementType type = argument.tensor.type();
  if (type == ElementType::kUint8 || type == ElementType::kInt32) {
    return Mismatch(operation, argument, "float32 or float64");
  }
  return CheckForm(operation, argument);
}

absl::Status CheckSide(const char* operation, const Argument& argument,
                       int64_t side) {
  if (side <= kMaxMatrixSide) return absl::OkStatus();
  return Mismatch(operation, argument,
                  absl::StrCat("at most ", kMaxMatrixSide,
                               " elements long on each side as a matrix"));
}

absl::Status OutOfRange(const char* operation, const char* name, int64_t value,
                        int64_t least, int64_t most) {
  return absl::InvalidArgumentError(absl::StrCat(operation, ": ", name,
                                                 " must be in [", least, ", ",
                                                 most, "], got ", value));
}

absl::Status CheckMoves(const char* operation, const Conv2DOptions& options) {
  if (options.stride < 1 || options.stride > kMaxMove) {
    return OutOfRange(operation, "stride", options.stride, 1, kMaxMove);
  }
  if (options.padding < -1 || options.padding > kMaxMove) {
    return OutOfRange(operation, "padding", options.padding, -1, kMaxMove);
  }
  return absl::OkStatus();
}

// `indices` must be int32 [count] with a bound() of at most `end`.
absl::Status CheckIndices(const char* operation, const Argument& indices,
                          int64_t count, int64_t end) {
  const ConstTensor& tensor = indices.tensor;
  if (absl::Status s =
          CheckIs(operation, indices, ElementType::kInt32, {count});
      // An empty tensor has no index that could be out of range.
      !s.ok() || count == 0) {
    return s;
  }
  if (tensor.bound() >= 1 && tensor.bound() <= end) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      operation, ": ", indices.name, " must be known to be in [0, ", end,
      "), got [0, ", tensor.bound(), "); StageIndices() looks"));
}

}  // namespace

ConvShape MakeConvShape(const ConstTensor& images, const ConstTensor& filters,
                        const Conv2DOptions& options) {
  return {.images = images.dim(0),
          .height = images.dim(1),
          .width = images.dim(2),
          .channels = images.dim(3),
          .kernel_height = filters.dim(0),
          .kernel_width = filters.dim(1),
          .filters = filters.dim(3),
          .stride = options.stride,
          .padding = options.padding};
}

absl::Status CheckIs(const char* operation, const Argument& argument,
                     ElementType type, const Shape& shape) {
  if (argument.tensor.type() != type || argument.tensor.shape() != shape) {
    return Mismatch(operation, argument, Describe(type, shape));
  }
  return CheckForm(operation, argument);
}

absl::Status CheckFloats(const char* operation, const Argument& argument,
                         size_t rank) {
  if (argument.tensor.rank() != rank) {
    return Mismatch(operation, argument, absl::StrCat("of rank ", rank));
  }
  return CheckFloatType(operation, argument);
}

absl::Status CheckMatMul(const ConstTensor& a, const ConstTensor& b,
                         const MatMulOptions& options, const ConstTensor& out) {
  const Argument a_argument{"a", a};
  const Argument b_argument{"b", b};
  if (absl::Status s = CheckFloats(kMatMul, a_argument, 2); !s.ok()) {
    return s;
  }
  if (absl::Status s = CheckFloats(kMatMul, b_argument, 2); !s.ok()) {
    return s;
  }
  const int64_t m = a.dim(options.transpose_a ? 1 : 0);
  const int64_t k = a.dim(options.transpose_a ? 0 : 1);
  const int64_t n = b.dim(options.transpose_b ? 0 : 1);
  const Shape b_shape = options.transpose_b ? Shape{n, k} : Shape{k, n};
  if (absl::Status s = CheckIs(kMatMul, b_argument, a.type(), b_shape);
      !s.ok()) {
    return s;
  }
  for (int64_t side : {m, k, n}) {
    // The argument that has the side, for the message; m and k are sides of
    // `a`.
    const Argument& owner = side == n ? b_argument : a_argument;
    if (absl::Status s = CheckSide(kMatMul, owner, side); !s.ok()) return s;
  }
  return CheckIs(kMatMul, {"out", out}, a.type(), {m, n});
}

absl::Status CheckBias(const char* operation, const Argument& rows,
                       const Argument& vector) {
  if (rows.tensor.rank() == 0) {
    return Mismatch(operation, rows, "of rank 1 or more");
  }
  if (absl::Status s = CheckFloatType(operation, rows); !s.ok()) return s;
  return CheckIs(operation, vector, rows.tensor.type(),
                 {rows.tensor.shape().back()});
}

absl::Status CheckSame(const char* operation, const Argument& first,
                       std::initializer_list<Argument> others) {
  if (absl::Status s = CheckFloatType(operation, first); !s.ok()) return s;
  for (const Argument& other : others) {
    if (absl::Status s = CheckIs(operation, other, first.tensor.type(),
                                 first.tensor.shape());
        !s.ok()) {
      return s;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCopy(const char* operation, const Argument& from,
                       const Argument& to) {
  if (absl::Status s =
          CheckIs(operation, from, to.tensor.type(), to.tensor.shape());
      !s.ok()) {
    return s;
  }
  return CheckIs(operation, to, from.tensor.type(), from.tensor.shape());
}

absl::Status CheckConv2D(const char* operation, const Argument& images,
                         const Argument& filters, const Argument& out,
                         const Conv2DOptions& options) {
  if (absl::Status s = CheckFloats(operation, images, 4); !s.ok()) return s;
  if (absl::Status s = CheckFloats(operation, filters, 4); !s.ok()) return s;
  const ConstTensor& image = images.tensor;
  const ConstTensor& filter = filters.tensor;
  const int64_t height = filter.dim(0);
  const int64_t width = filter.dim(1);
  // Half of an even kernel is no whole number of pixels.
  if (options.padding < 0 && (height % 2 == 0 || width % 2 == 0)) {
    return Mismatch(operation, filters, "of odd height and width");
  }
  if (absl::Status s = CheckMoves(operation, options); !s.ok()) return s;
  // Filters must have the channels of the images.
  if (absl::Status s = CheckIs(operation, filters, image.type(),
                               {height, width, image.dim(3), filter.dim(3)});
      !s.ok()) {
    return s;
  }
  if (absl::Status s =
          CheckSide(operation, images, image.dim(1) * image.dim(2));
      !s.ok()) {
    return s;
  }
  // Convolutions are products of matrices: patches by filters.
  for (int64_t side : {height * width * image.dim(3), filter.dim(3)}) {
    if (absl::Status s = CheckSide(operation, filters, side); !s.ok()) return s;
  }
  const ConvShape shape = MakeConvShape(image, filter, options);
  // Padding may make the output larger than the images.
  if (absl::Status s =
          CheckSide(operation, out, shape.out_height() * shape.out_width());
      !s.ok()) {
    return s;
  }
  return CheckIs(
      operation, out, image.type(),
      {image.dim(0), shape.out_height(), shape.out_width(), filter.dim(3)});
}

absl::Status CheckAveragePool(const char* operation, const Argument& in,
                              int64_t window, const Argument& out) {
  if (absl::Status s = CheckFloats(operation, in, 4); !s.ok()) return s;
  if (window < 1 || window > kMaxMove) {
    return OutOfRange(operation, "window", window, 1, kMaxMove);
  }
  const Shape& full = in.tensor.shape();
  return CheckIs(operation, out, in.tensor.type(),
                 {full[0], (full[1] + window - 1) / window,
                  (full[2] + window - 1) / window, full[3]});
}

absl::Status CheckNorm(const char* operation, const Argument& in, bool by_row,
                       const Argument& statistics,
                       std::initializer_list<Argument> vectors) {
  if (absl::Status s = CheckFloats(operation, in, 2); !s.ok()) return s;
  const int64_t n = in.tensor.dim(1);
  const Shape kept = by_row ? Shape{in.tensor.dim(0), 2} : Shape{2, n};
  if (absl::Status s = CheckIs(operation, statistics, in.tensor.type(), kept);
      !s.ok()) {
    return s;
  }
  for (const Argument& vector : vectors) {
    if (absl::Status s = CheckIs(operation, vector, in.tensor.type(), {n});
        !s.ok()) {
      return s;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPositive(const char* operation, const char* name,
                           double value) {
  if (value > 0 && value < std::numeric_limits<double>::infinity()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(operation, ": ", name, " must be above 0, got ", value));
}

absl::Status CheckDropout(const DropoutOptions& options) {
  if (options.rate >= 0 && options.rate < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("Dropout: rate must be in [0, 1), got ", options.rate));
}

absl::Status CheckEmbed(const char* operation, const Argument& table,
                        const ConstTensor& ids, const Argument& out) {
  if (absl::Status s = CheckFloats(operation, table, 2); !s.ok()) return s;
  const int64_t count = ids.size();
  if (absl::Status s = CheckIs(operation, out, table.tensor.type(),
                               {count, table.tensor.dim(1)});
      !s.ok()) {
    return s;
  }
  return CheckIndices(operation, {"ids", ids}, count, table.tensor.dim(0));
}

absl::Status CheckAttention(const char* operation, const Argument& qkv,
                            int64_t heads, const Argument& out) {
  if (absl::Status s = CheckFloats(operation, qkv, 3); !s.ok()) return s;
  const Shape& shape = qkv.tensor.shape();
  if (heads < 1 || shape[2] == 0 || shape[2] % 3 != 0 ||
      shape[2] / 3 % heads != 0) {
    return Mismatch(operation, qkv,
                    absl::StrCat("[n,t,3d] with d a multiple of ", heads,
                                 " heads, at least one"));
  }
  const ElementType type = qkv.tensor.type();
  if (absl::Status s =
          CheckIs(operation, out, type, {shape[0], shape[1], shape[2] / 3});
      !s.ok()) {
    return s;
  }
  // Attention is computed as products of matrices with these sides.
  for (int64_t side : {shape[1], shape[2]}) {
    if (absl::Status s = CheckSide(operation, qkv, side); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status CheckMaxPool2x2(const char* operation, const Argument& in,
                             const Argument& out, const Argument& argmax) {
  if (absl::Status s = CheckFloats(operation, in, 4); !s.ok()) return s;
  const Shape& full = in.tensor.shape();
  // Not (x + 1) / 2, which could overflow.
  const Shape half = {full[0], full[1] / 2 + full[1] % 2,
                      full[2] / 2 + full[2] % 2, full[3]};
  if (absl::Status s = CheckIs(operation, out, in.tensor.type(), half);
      !s.ok()) {
    return s;
  }
  return CheckIs(operation, argmax, ElementType::kUint8, half);
}

absl::Status CheckLabels(const char* operation, const ConstTensor& logits,
                         const ConstTensor& labels) {
  if (absl::Status s = CheckFloats(operation, {"logits", logits}, 2); !s.ok()) {
    return s;
  }
  return CheckIndices(operation, {"labels", labels}, logits.dim(0),
                      logits.dim(1));
}

absl::Status CheckNumber(const char* operation, const Argument& number) {
  return CheckIs(operation, number, ElementType::kFloat64, {1});
}

}  // namespace lockstep::worker
