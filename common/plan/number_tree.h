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

// Returns the number of blocks of `per_block` numbers, a power of two, in a
// step of `numbers`; the last block may be shorter. Both must be > 0.
int BlocksOf(int numbers, int per_block);

// Returns the size of a block if a step of `numbers` is cut into `blocks`: the
// smallest power of two that gives that many; 0 if there is none.
int BlockSizeOf(int numbers, int blocks);

// A sum in the order of the tree needs a stack: each term is put on top, and
// then the two topmost entries are replaced by their sum, MergesAfter() times.
// Returns that number for term `index` of `count`.
int MergesAfter(int index, int count);

// As MergesAfter(), if only the terms with `present` exist: a sum with an
// absent term is the other term. One element for each present term.
std::vector<int> MergesOfPresent(const std::vector<bool>& present);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_NUMBER_TREE_H_
