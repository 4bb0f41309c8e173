"""What a trace of variables has beside an operation, from all workers."""

from record_strategies.forms import same
from record_strategies.team import joined as joined_results

# A part of the text of a refusal, and the reason that the trace gives for it.
REASONS = (
    ("`NONE` variable synchronization mode", "synchronization_none"),
    ("aggregation=MEAN and a non-floating dtype", "integer_mean_variable"),
    ("You must specify an aggregation method to update",
     "no_aggregation_for_write"),
    ("Could not convert from `tf.VariableAggregation`", "no_aggregation"),
    ("in cross-replica context when aggregation is set to "
     "`tf.VariableAggregation.SUM`", "on_read_sum_cannot_add_across"),
    ("'PerReplica' object has no attribute", "per_replica_value_across"),
    ("unsupported operand type(s) for /: 'PerReplica'",
     "per_replica_value_across"),
    ("A non-DistributedValues value ",
     "plain_value_cannot_be_summed"),
    ("with NONE or `ONLY_FIRST_REPLICA` aggregation",
     "scatter_needs_none_or_first"),
    ("Variables with `synchronization=ON_READ` doesn't support",
     "on_read_scatter"),
    ("Tensor conversion requested dtype", "dtype_differs_from_variable"),
)


def reason_of(op, answer):
    for part, reason in REASONS:
        if part in answer["text"]:
            return reason
    if op["op"] == "reduce_variable" and not answer["text"]:
        return "mirrored_value_cannot_be_summed"  # a bare assertion
    return "unknown"


def state_of(states):
    """The `state` of a trace: one copy of each variable where all are equal."""
    if all(same([copy for state in states for copy in state[name]])
           for name in states[0]):
        return {"all_copies": {name: copies[0]
                               for name, copies in states[0].items()}}
    return states


def joined(op, answers, topology):
    """The answers of all workers to an operation, in the form of the trace."""
    del topology
    statuses = [answer["status"] for answer in answers]
    made = {"status": statuses[0] if same(statuses) else statuses}
    refused = [answer for answer in answers if answer["status"] != "OK"]
    if refused:
        made["reason"] = reason_of(op, refused[0])
        made["exception"] = refused[0]["exception"]
    elif "trainable" in answers[0]:
        made["trainable"] = answers[0]["trainable"]
    elif "result" in answers[0]:
        made["result"] = joined_results(
            [answer["result"] for answer in answers])
    if "state" in answers[0]:
        made["state"] = state_of([answer["state"] for answer in answers])
    return made
