"""Names for why TensorFlow refuses an operation of strategy_values."""

import re

# For each name the class of the exception and what its text has. The first
# that fits counts.
REASONS = (
    ("raised_by_the_function", "ValueError", "^raised by the function$"),
    ("args_not_a_list", "ValueError", "args must be a list or tuple"),
    ("result_lengths_differ", "AssertionError", "different lengths"),
    ("result_keys_differ", "AssertionError", r"^v\[0\]\.keys"),
    ("needs_replica_context", "RuntimeError",
     "inside `call_for_each_replica"),
    ("needs_cross_replica_context", "RuntimeError",
     "(being in|requires) cross-replica context"),
    ("plain_value_cannot_be_summed", "ValueError",
     "A non-DistributedValues value"),
    ("unknown_reduce_op", "ValueError", "is not a valid ReduceOp"),
    ("axis_out_of_range", "ValueError", "Invalid reduction dimension"),
    # A gather joins 0..axis-1 and axis+1..rank-1.
    ("axis_out_of_range", "ValueError", "Requires start <= limit"),
    ("int32_in_a_batch", "ValueError", "Inputs to batch_reduce_to must be"),
    ("dtypes_in_a_pack_differ", "TypeError", "'ConcatV2' Op have types"),
    ("not_for_the_default_strategy", "NotImplementedError", "^TODO"),
    ("not_for_the_default_strategy", "RuntimeError",
     "unsupported by default tf.distribute.Strategy"),
    ("shape_differs_from_variable", "InvalidArgumentError",
     "Cannot (update|assign)"),
    ("not_a_variable_of_this_strategy", "ValueError",
     "`colocate_vars_with` must only be passed"),
    ("needs_scope", "RuntimeError", 'inside "with strategy.scope'),
    ("another_strategy_in_scope", "RuntimeError",
     "Mixing different tf.distribute.Strategy"),
    ("shapes_differ_in_collective", "InvalidArgumentError", "Collective"),
    ("shapes_differ", "InvalidArgumentError", "AddN|ConcatOp"),
)


def reason_of(op, refused):
    """The name; raises ValueError where there is none yet."""
    exception, text = refused["exception"], refused["text"]
    if exception == "AssertionError" and not text:
        if op.get("destination") == "list":
            return "destination_is_a_list"
        return "mirrored_value_cannot_be_summed"
    for reason, kind, pattern in REASONS:
        if exception == kind and re.search(pattern, text):
            return reason
    raise ValueError("no name for %s: %s of %s" % (
        exception, text, op["op"]))
