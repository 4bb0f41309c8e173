#ifndef LOCKSTEP_COMMON_PLAN_NUMBER_TREE_H_
#define LOCKSTEP_COMMON_PLAN_NUMBER_TREE_H_

#include <vector>

// The order in which the gradients of the micro-batches of a shared step are
// added: a binary tree over their numbers. A range of numbers is split at the
// largest power of two below its length, so that each aligned block of a power
// of two is a subtree:
//
//   0 1 2 3 4 5 6      ((0+1) + (2+3)) + ((4+5) + 6)
//   '-+-' '-+-' '-+-' |
//     '--+--'    '-+--'
//        '----+----'
//
// The sum of a block is thus an inner node, and the bits of the total do not
// depend on the size of blocks.
namespace lockstep {

// Blocks of `per_block` numbers, a power of two, that a step of `numbers` has;
// the last one may be shorter. Both > 0.
int BlocksOf(int numbers, int per_block);

// The numbers of a block where a step of `numbers` has `blocks`; 0 if no power
// of two gives that many. The smallest one, if several do.
int BlockSizeOf(int numbers, int blocks);

// A sum in the order of the tree needs a stack: each term is put on top, and
// then the two topmost entries are replaced by their sum so many times. Returns
// that for term `index` of `count`.
int MergesAfter(int index, int count);

// As MergesAfter(), of all terms of which `present` is true: a sum with an
// absent term is the other term. One element for each term that is present.
std::vector<int> MergesOfPresent(const std::vector<bool>& present);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_NUMBER_TREE_H_
