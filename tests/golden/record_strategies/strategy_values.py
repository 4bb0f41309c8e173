"""Traces of values in strategies: run, reductions, updates, places."""

import tensorflow as tf

from record_strategies import team
from record_strategies.forms import Values, array, number, same
from record_strategies.made_values import TOPOLOGIES, scenarios
from record_strategies.values_places import Places
from record_strategies.values_reasons import reason_of
from record_strategies.values_reduce import Reduce
from record_strategies.values_run import Run
from record_strategies.values_update import Update


class Executor(Run, Reduce, Update, Places):
    """Executes the operations of one scenario in one worker."""

    def __init__(self, strategy, topology, worker, scenario):
        self.strategy = strategy
        self.topology = topology
        self.values = Values(strategy, topology, worker)
        self.forms = {form["name"]: form
                      for form in scenario.get("variables", [])}
        for form in self.forms.values():
            if "colocate_with" not in form:  # an operation makes those
                with strategy.scope():
                    self.create(form)

    def create(self, form):
        """Makes a variable of the scenario."""
        made = tf.Variable(
            array(form["initial"]), name=form["name"],
            synchronization=getattr(tf.VariableSynchronization, form.get(
                "synchronization", "AUTO")),
            aggregation=getattr(tf.VariableAggregation, form.get(
                "aggregation", "NONE")))
        self.values.variables[form["name"]] = made
        return made

    def result(self, value):
        return {"result": self.values.out(value)}

    def execute(self, op):
        answer = getattr(self, op["op"])(op)
        if op["op"] == "update_in_replica":
            answer["after"] = self.state()
        return {**answer, **self.after(op)}

    def after(self, op):
        return {"after": self.state()} if op["op"] == "update" else {}

    def state(self):
        """The numbers of every local copy of every variable."""
        return {name: [[number(x) for x in copy.numpy().flat]
                       for copy in self.values.local(variable)]
                for name, variable in self.values.variables.items()}


def joined_state(states):
    """The `after` of a trace: an entry for each worker, or for all copies."""
    copies = {name: [copy for state in states for copy in state[name]]
              for name in states[0]}
    if all(same(each) for each in copies.values()):
        return {"all_copies": {name: each[0]
                               for name, each in copies.items()}}
    return list(states)


def joined(op, answers, topology):
    """What goes beside an operation into the file."""
    known = [answer for answer in answers if answer is not None]
    statuses = [answer["status"] for answer in known]
    made = {"status": statuses[0] if len(set(statuses)) == 1 else statuses}
    refused = next((x for x in known if x["status"] != "OK"), None)
    if refused is not None:
        made["reason"] = reason_of(op, refused)
        made["exception"] = refused["exception"]
    elif "result" in known[0]:
        made["result"] = team.joined(x["result"] for x in known)
    if "after" in known[0]:
        made["after"] = joined_state([x["after"] for x in known])
    return made


__all__ = ["Executor", "TOPOLOGIES", "joined", "scenarios"]
