#include "server/shard/parts/ring_means.h"

#include <algorithm>
#include <vector>

#include "common/numeric/bfloat16.h"
#include "common/numeric/sum_order.h"

namespace lockstep::server {
namespace {

// Bytes [first, first + size) of a gradient.
std::vector<ByteSlice> Cut(absl::Span<const ByteSlice> slices, size_t first,
                           size_t size) {
  std::vector<ByteSlice> cut;
  for (const ByteSlice& slice : slices) {
    if (first >= slice.size) {
      first -= slice.size;
      continue;
    }
    const size_t taken = std::min(size, slice.size - first);
    if (taken > 0) cut.push_back({slice.data + first, taken});
    size -= taken;
    first = 0;
  }
  return cut;
}

// Elements [first, first + count) of the gradients that are not absent, from
// rank `begin` on.
class Terms {
 public:
  Terms(const PartSpec& part, absl::Span<const PartGradient> gradients,
        size_t begin, size_t first, size_t count) {
    for (size_t i = 0; i < gradients.size(); ++i) {
      const PartGradient& gradient = gradients[(begin + i) % gradients.size()];
      if (gradient.absent) continue;
      const size_t item = gradient.type == GradientType::kBFloat16
                              ? kBFloat16Size
                              : ElementSize(part.dtype);
      cut_.push_back(Cut(gradient.slices, first * item, count * item));
      types_.push_back(gradient.type);
    }
  }

  std::vector<GradientSlices> slices() const {
    std::vector<GradientSlices> slices;
    for (size_t i = 0; i < cut_.size(); ++i) {
      slices.push_back({cut_[i], types_[i]});
    }
    return slices;
  }

 private:
  std::vector<std::vector<ByteSlice>> cut_;
  std::vector<GradientType> types_;
};

}  // namespace

std::vector<RingPlace> RingPlacesOf(
    int64_t bytes_per_pack, const std::vector<VariableSpec>& variables,
    const std::vector<VariableSettings>& settings) {
  std::vector<RingPlace> places(variables.size());
  std::vector<size_t> pack;
  int64_t elements = 0;  // of the pack
  const auto end_pack = [&] {
    for (const size_t i : pack) places[i].elements = elements;
    pack.clear();
    elements = 0;
  };
  for (size_t i = variables.size(); i-- > 0;) {
    const VariableSpec& variable = variables[i];
    const int64_t size = NumElements(variable.shape);
    if (bytes_per_pack < 0 || variable.is_table() || variable.buffer ||
        !settings[i].trained) {
      places[i] = {0, size};
      continue;
    }
    if (!pack.empty()) {
      const DType type = variables[pack[0]].dtype;
      const auto bytes = elements * static_cast<int64_t>(ElementSize(type));
      const bool full = bytes_per_pack > 0 && bytes > bytes_per_pack;
      if (full || type != variable.dtype) end_pack();
    }
    places[i].offset = elements;
    elements += size;
    pack.push_back(i);
  }
  end_pack();
  return places;
}

MeanOutcome StoreRingMean(const PartSpec& part, const RingPlace& place,
                          absl::Span<const PartGradient> gradients,
                          absl::Span<std::byte> mean, bool measure) {
  const size_t ranks = gradients.size();
  const size_t chunk = RingChunk(static_cast<size_t>(place.elements), ranks,
                                 ElementSize(part.dtype));
  const auto offset = static_cast<size_t>(place.offset + part.offset);
  const auto size = static_cast<size_t>(part.count);
  MeanOutcome outcome;
  for (size_t first = 0; first < size;) {
    // In a ring, chunk c is summed beginning with rank c.
    const size_t c = (offset + first) / chunk;
    const size_t count =
        std::min(size - first, (c + 1) * chunk - offset - first);
    const MeanOutcome stored = StoreMean(
        part.dtype, Terms(part, gradients, c, first, count).slices(),
        static_cast<int64_t>(ranks),
        mean.subspan(MeanSize(part.dtype, first), MeanSize(part.dtype, count)),
        /*merges=*/{}, /*measure=*/false);
    outcome.finite = outcome.finite && stored.finite;
    first += count;
  }
  // Over the whole mean, as the servers that take it add up its squares.
  if (measure) outcome.squares = SumOfSquares(MeanType(part.dtype), mean);
  return outcome;
}

}  // namespace lockstep::server
