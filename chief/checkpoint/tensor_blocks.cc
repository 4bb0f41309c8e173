#include "chief/checkpoint/tensor_blocks.h"

#include <algorithm>

namespace lockstep::chief {
namespace {

// Adds blocks of a part whose elements are consecutive.
void CutPart(const Part& part, int64_t target,
             std::vector<TensorBlock>& blocks) {
  for (int64_t first = 0; first < part.count; first += target) {
    const int64_t count = std::min(target, part.count - first);
    blocks.push_back({part.offset + first,
                      count,
                      0,
                      {{part.server, part.index, first, count}}});
  }
}

// Adds blocks of parts whose rows alternate. Each block has the same number of
// rows of every part, except that parts of the last one may have a row less.
void CutInTurn(const std::vector<Part>& parts, int64_t width, int64_t target,
               std::vector<TensorBlock>& blocks) {
  const auto num_parts = static_cast<int64_t>(parts.size());
  const int64_t step =
      std::max<int64_t>(1, target / (width * num_parts)) * width;
  for (int64_t first = 0; first < parts[0].count; first += step) {
    TensorBlock block{first * num_parts, 0, width, {}};
    for (const Part& part : parts) {
      const int64_t count = std::min(step, part.count - first);
      if (count <= 0) break;
      block.count += count;
      block.pieces.push_back({part.server, part.index, first, count});
    }
    blocks.push_back(std::move(block));
  }
}

}  // namespace

std::vector<TensorBlock> CutIntoBlocks(const Plan& plan, int variable,
                                       int64_t target) {
  std::vector<TensorBlock> blocks;
  std::vector<Part> in_turn;
  for (const Part& part : plan.parts) {
    if (part.variable != variable) continue;
    if (part.row_stride > 1) {
      in_turn.push_back(part);
    } else {
      CutPart(part, target, blocks);
    }
  }
  if (in_turn.empty()) return blocks;
  CutInTurn(in_turn, RowWidth(plan.variables[variable].shape), target, blocks);
  return blocks;
}

}  // namespace lockstep::chief
