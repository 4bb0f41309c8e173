"""Checks the reactions of platforms to the exit codes of the tasks in manifests:

    check_restarts.py MANIFEST...

A task that is done, or that an operator has stopped, is not started again, and
a worker that an operator takes out does not end the others; a task that asks for
it by 128 or above is started again, and one that would fail again is not, unless
it is a container that starts again in its pod, which knows no such rule. Prints
what is otherwise, and leaves with 1 if anything is.
"""

import sys

import yaml

DONE, FAILED, USAGE, HELD = 0, 1, 2, 3
AGAIN = (129, 137, 143)


def job_starts_again(job, code):
    """A Job of Kubernetes: the first rule that matches decides."""
    if job["template"]["spec"]["restartPolicy"] != "Never":
        return code != DONE
    for rule in job.get("podFailurePolicy", {}).get("rules", []):
        codes = rule["onExitCodes"]
        if (code in codes["values"]) == (codes["operator"] == "In"):
            return rule["action"] != "FailJob" and code != DONE
    return code != DONE


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
    """A rule of the API server: rules need pods that are not restarted."""
    jobs = [job["template"]["spec"]
            for job in document["spec"].get("replicatedJobs", [])]
    for job in jobs or [document["spec"]]:
        if ("podFailurePolicy" in job and
                job["template"]["spec"]["restartPolicy"] != "Never"):
            yield "podFailurePolicy takes restartPolicy Never"


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
