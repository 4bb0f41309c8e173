"""Records traces of TensorFlow's tf.distribute strategies.

`team` runs a scenario in one process for each worker, `member` is such a
process, `forms` has the values between the trace and TensorFlow, and a module
for each kind of trace has what makes scenarios and what executes their
operations.
"""
