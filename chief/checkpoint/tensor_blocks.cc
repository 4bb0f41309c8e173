#include "chief/checkpoint/tensor_blocks.h"

#include <algorithm>

namespace lockstep::chief {
namespace {

// Blocks of one part whose elements follow one another.
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

// Blocks of parts that have the rows in turn, each of as many rows of every
// part; the last one's parts may lack a row at the end.
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
