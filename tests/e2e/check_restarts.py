"""Checks the reactions of platforms to the exit codes of the tasks in manifests:

    check_restarts.py MANIFEST...

A task that is done, or that an operator has stopped, is not started again, and
a worker that an operator takes out does not end the others; a task that asks for
it by 128 or above is started again, and one that would fail again is not, unless
it is a container that starts again in its pod, which knows no such rule. A Job
counts neither the starts that the protocol asks for nor drained nodes, or it counts
so far that no job gets there. Prints what is otherwise, and leaves with 1 if
anything is.
"""

import sys

import yaml

DONE, FAILED, USAGE, HELD = 0, 1, 2, 3
AGAIN = (129, 137, 143)
ASKED = (129, 143)  # by the protocol, of all tasks at once
OUT_OF_REACH = 100000  # starts


def job_rules(job):
    return job.get("podFailurePolicy", {}).get("rules", [])


def job_action(job, code):
    """Of a Job of Kubernetes: the first rule that matches decides."""
    for rule in job_rules(job):
        codes = rule.get("onExitCodes")
        if codes and (code in codes["values"]) == (codes["operator"] == "In"):
            return rule["action"]
    return "Count"


def job_starts_again(job, code):
    return code != DONE and job_action(job, code) != "FailJob"


def job_counts(job):
    """The starts that a Job counts although it should not."""
    exits = [code for code in ASKED for _ in range(3 * job["completions"])]
    counted = sum(job_action(job, code) == "Count" for code in exits)
    limit = job["backoffLimit"]
    if counted and limit < OUT_OF_REACH:
        yield (f"{counted} of {len(exits)} starts that tasks ask for are counted, "
               f"and backoffLimit is {limit}")
    first = (job_rules(job) or [{"action": "Count"}])[0]
    drained = [condition["type"] for condition in first.get("onPodConditions", [])]
    if limit < OUT_OF_REACH and (first["action"], drained) != (
            "Ignore", ["DisruptionTarget"]):
        yield "pods of drained nodes are counted, or fail the Job"


def pod_starts_again(policy, code):
    return {"Always": True, "OnFailure": code != DONE, "Never": False,
            "ExitCode": code >= 128}[policy]


def tasks(document):
    """(role, pod, in place, starts again) of each kind of task."""
    spec = document["spec"]
    if document["kind"] == "TFJob":
        for role, replica in spec["tfReplicaSpecs"].items():
            policy = replica["restartPolicy"]
            yield (role.lower(), replica["template"]["spec"], False,
                   lambda code, p=policy: pod_starts_again(p, code))
    elif "tasks" in spec:  # Volcano
        for task in spec["tasks"]:
            pod = task["template"]["spec"]
            yield (task["name"], pod, True,
                   lambda code, p=pod: pod_starts_again(p["restartPolicy"], code))
    else:
        jobs = [(job["name"], job["template"]["spec"])
                for job in spec.get("replicatedJobs", [])]
        if document["kind"] == "Job":
            jobs = [(document["metadata"]["name"].split("-")[-1], spec)]
        for role, job in jobs:
            pod = job["template"]["spec"]
            yield (role, pod, pod["restartPolicy"] != "Never",
                   lambda code, j=job: job_starts_again(j, code))


def mistakes(role, pod, in_place, starts_again):
    args = pod["containers"][0].get("args", [])
    held = DONE if "--stopped_is_done" in args else HELD
    if starts_again(DONE):
        yield "is started again when it is done"
    if starts_again(held):
        yield f"is started again when it was stopped for good, with code {held}"
    if role == "worker" and held != DONE:
        yield "ends all workers when one is taken out"
    for code in AGAIN:
        if not starts_again(code):
            yield f"is not started again with code {code}"
    for code in (FAILED, USAGE):
        if not in_place and starts_again(code):
            yield f"is started again with code {code}"


def check_rules(document):
    """One rule is of the API server: rules need pods that are not restarted."""
    if document["kind"] == "TFJob" or "tasks" in document["spec"]:
        return
    jobs = [job["template"]["spec"]
            for job in document["spec"].get("replicatedJobs", [])]
    for job in jobs or [document["spec"]]:
        if ("podFailurePolicy" in job and
                job["template"]["spec"]["restartPolicy"] != "Never"):
            yield "podFailurePolicy takes restartPolicy Never"
        # With rules it is the only policy.
        if ("podFailurePolicy" not in job and
                job.get("podReplacementPolicy") != "Failed"):
            yield "another pod of a task starts while the one before serves"
        yield from job_counts(job)


def main():
    found, checked = [], 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            documents = [d for d in yaml.safe_load_all(file)
                         if d["kind"] in ("Job", "JobSet", "TFJob")]
        for document in documents:
            found += [f"{path}: {text}" for text in check_rules(document)]
            for role, *task in tasks(document):
                checked += 1
                found += [f"{path}: {role} {text}"
                          for text in mistakes(role, *task)]
    print("\n".join(found or [f"{checked} tasks are started again as they ask"]))
    sys.exit(1 if found or not checked else 0)


if __name__ == "__main__":
    main()
