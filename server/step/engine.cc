#include "server/step/engine.h"

#include <iterator>
#include <utility>

namespace lockstep::server {

void ShardAnswers::Append(ShardAnswers&& other) {
  pushes.insert(pushes.end(), std::make_move_iterator(other.pushes.begin()),
                std::make_move_iterator(other.pushes.end()));
  takes.insert(takes.end(), std::make_move_iterator(other.takes.begin()),
               std::make_move_iterator(other.takes.end()));
  if (other.prepared.has_value()) prepared = other.prepared;
  means_changed = means_changed || other.means_changed;
}

}  // namespace lockstep::server
