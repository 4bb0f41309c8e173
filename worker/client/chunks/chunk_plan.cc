#include "worker/client/chunks/chunk_plan.h"

#include <map>
#include <utility>

namespace lockstep::worker {

namespace {

// Packs the parts of one server.
class Packer {
 public:
  explicit Packer(size_t target_bytes) : target_bytes_(target_bytes) {}

  // Parts must come in the order of the plan.
  void Add(const Part& part, size_t element) {
    const size_t size = part.count * element;
    // Indices of parts in a message are consecutive. A mirror that also sums
    // the parts of another one has two sequences of them, which alternate in
    // the order of the plan.
    auto open = open_.extract(part.index);
    if (open.empty() || chunks_[open.mapped()].size + size > target_bytes_) {
      open = {};
      chunks_.push_back({part.index, 0, 0, {}});
    }
    const size_t place = open.empty() ? chunks_.size() - 1 : open.mapped();
    Chunk& chunk = chunks_[place];
    ++chunk.num_parts;
    chunk.size += size;
    chunk.ranges.push_back({part.variable, part.offset * element, size});
    open_[part.index + 1] = place;
  }

  // A part of a table is a chunk by itself, whose size each pass decides.
  void AddTable(const Part& part) {
    chunks_.push_back({part.index, 1, 0, {{part.variable, 0, 0}}, part});
  }

  std::vector<Chunk> chunks() && { return std::move(chunks_); }

 private:
  const size_t target_bytes_;
  std::vector<Chunk> chunks_;
  // The chunks that may grow, by the index of the part that may join.
  std::map<int, size_t> open_;
};

}  // namespace

std::vector<std::vector<Chunk>> MakeChunks(const Plan& plan, int num_servers,
                                           size_t target_bytes) {
  std::vector<Packer> packers(num_servers, Packer(target_bytes));
  for (const Part& part : plan.parts) {
    const VariableSpec& variable = plan.variables[part.variable];
    if (variable.is_table()) {
      packers[part.server].AddTable(part);
    } else {
      packers[part.server].Add(part, ElementSize(variable.dtype));
    }
  }
  std::vector<std::vector<Chunk>> chunks;
  for (Packer& packer : packers) chunks.push_back(std::move(packer).chunks());
  return chunks;
}

}  // namespace lockstep::worker
