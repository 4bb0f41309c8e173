#ifndef LOCKSTEP_CHIEF_SERVERS_TAKE_RESULT_H_
#define LOCKSTEP_CHIEF_SERVERS_TAKE_RESULT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::chief {

// A server's answer to a take, as TakeAndApplyResponse.
struct TakeResult {
  bool prepared = false;
  int64_t attempt = 0;         // of the current step; 0: no progress known
  int64_t committed_step = 0;  // the server has committed it by itself; 0: none
  std::string waits_for = {};  // if it is not prepared, a text
  std::vector<int> announced_workers = {};  // from ps task 0, ascending
  // If it is not prepared: parts that lack gradients, and by worker the number
  // of these parts that have its gradient.
  int open_parts = 0;
  std::map<int, int> pushed = {};
  std::vector<int> lost_workers = {};  // as in TakeAndApplyResponse
  // If it is prepared, or has `squares`: the workers whose gradients it has
  // summed, ascending.
  std::vector<int> contributors = {};
  // If the norm of the mean gradients is limited: the sum of the squares of
  // this server's means, once all gradients have arrived.
  std::optional<double> squares = {};
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVERS_TAKE_RESULT_H_
