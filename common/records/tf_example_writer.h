#ifndef LOCKSTEP_COMMON_RECORDS_TF_EXAMPLE_WRITER_H_
#define LOCKSTEP_COMMON_RECORDS_TF_EXAMPLE_WRITER_H_

#include <string>

#include "common/records/tf_example.h"

namespace lockstep {

// The bytes of a tf.train.Example, numbers packed and features in the order of
// their names, as TensorFlow writes them: what ParseTfExample() reads. A
// feature has values of one type at most; of several the first in TfFeature
// counts.
std::string SerializeTfExample(const TfExample& example);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RECORDS_TF_EXAMPLE_WRITER_H_
