#ifndef LOCKSTEP_CHIEF_CHECKPOINT_TENSOR_BLOCKS_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_TENSOR_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/plan/plan.h"

namespace lockstep::chief {

// TensorBlock is a range of a variable, of its value or of a slot, with its
// places on the servers: one range of one part, or, for tables that are cut by
// RowCut::kMod, ranges of several parts whose rows alternate.
//
// Units: elements.
struct TensorBlock {
  struct Piece {
    int server = 0;
    int part = 0;  // among those of the server
    int64_t first = 0;
    int64_t count = 0;
  };
  int64_t offset = 0;  // in the variable
  int64_t count = 0;
  int64_t row_width = 0;  // of several pieces, in the order of their rows
  std::vector<Piece> pieces;
};

// Cuts the parts of a variable into blocks of about `target` elements. A part
// of at most `target` elements is one block.
std::vector<TensorBlock> CutIntoBlocks(const Plan& plan, int variable,
                                       int64_t target);

// Calls `visit(in_block, in_piece, size)` for each range of bytes that piece
// `index` shares with its block: the offsets in both, and the size.
template <typename Visit>
void ForEachStretch(const TensorBlock& block, size_t index, size_t element,
                    Visit visit) {
  const TensorBlock::Piece& piece = block.pieces[index];
  if (block.pieces.size() == 1) {
    visit(size_t{0}, size_t{0}, static_cast<size_t>(piece.count) * element);
    return;
  }
  const size_t row = static_cast<size_t>(block.row_width) * element;
  const size_t stride = row * block.pieces.size();
  const size_t rows = static_cast<size_t>(piece.count / block.row_width);
  for (size_t i = 0; i < rows; ++i) {
    visit(index * row + i * stride, i * row, row);
  }
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_TENSOR_BLOCKS_H_
