"""Checks resources of other people's operators against operator_schemas.yaml:

    check_operator_examples.py SCHEMAS EXAMPLE [EMBEDDED]

Prints what is wrong, each with its place, and leaves with 1 if anything is.
Writes the specifications that the resource embeds to EMBEDDED, as Pods and Jobs,
which the official schemas of Kubernetes know.
"""

import sys

import jsonschema
import yaml


def places(document):
    """(where, kind, template) of each specification that is embedded."""
    spec = document["spec"]
    if document["kind"] == "TFJob":
        for role, replica in spec["tfReplicaSpecs"].items():
            yield f"tfReplicaSpecs.{role}", "Pod", replica["template"]
    elif document["kind"] == "JobSet":
        for job in spec["replicatedJobs"]:
            yield f"replicatedJobs.{job['name']}", "Job", job["template"]
    else:
        for task in spec["tasks"]:
            yield f"tasks.{task['name']}", "Pod", task["template"]


def check_volumes(where, spec):
    """Rules of an API server that no schema can express."""
    volumes = {volume["name"] for volume in spec.get("volumes", [])}
    for container in spec["containers"]:
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                yield f"{where}: there is no volume {mount['name']}"


def check_security(where, spec):
    """The standard "restricted" of Kubernetes, as the pods of the base pass it, and
    the time that a task may take to stop with a checkpoint."""
    pod = spec.get("securityContext", {})
    if pod.get("runAsNonRoot") is not True:
        yield f"{where}: securityContext: runAsNonRoot is not true"
    if pod.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield f"{where}: securityContext: seccompProfile is not RuntimeDefault"
    if spec.get("terminationGracePeriodSeconds") != 90:
        yield f"{where}: terminationGracePeriodSeconds is not 90"
    for container in spec["containers"]:
        context = container.get("securityContext", {})
        for key, wanted in (("allowPrivilegeEscalation", False),
                            ("readOnlyRootFilesystem", True),
                            ("capabilities", {"drop": ["ALL"]})):
            if context.get(key) != wanted:
                yield f"{where}: {container['name']}: {key} is not {wanted}"


def check_counts(document):
    """All tasks of a gang are needed, or its scheduler starts a part."""
    spec = document["spec"]
    if document["apiVersion"].startswith("batch.volcano.sh/"):
        tasks = sum(task["replicas"] for task in spec["tasks"])
        if spec.get("minAvailable") != tasks:
            yield f"spec.minAvailable: {spec.get('minAvailable')}, not {tasks}"


def mistakes(schemas, document):
    name = f"{document.get('apiVersion')}/{document.get('kind')}"
    if name not in schemas["definitions"]:
        return [f"no schema for {name}"]
    schema = dict(schemas, **{"$ref": f"#/definitions/{name.replace('/', '~1')}"})
    found = [f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
             for error in jsonschema.Draft202012Validator(schema).iter_errors(
                 document)]
    if found:
        return found
    for where, kind, template in places(document):
        pod = template if kind == "Pod" else template["spec"]["template"]
        found += check_volumes(where, pod["spec"])
        found += check_security(where, pod["spec"])
    return found + list(check_counts(document))


def embedded(document):
    for where, kind, template in places(document):
        yield {"apiVersion": "v1" if kind == "Pod" else "batch/v1", "kind": kind,
               "metadata": {"name": where.split(".")[-1].lower()},
               "spec": template["spec"]}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schemas = yaml.safe_load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        documents = list(yaml.safe_load_all(file))
    found = [text for document in documents
             for text in mistakes(schemas, document)]
    for text in found:
        print(f"{sys.argv[2]}: {text}")
    if not documents or found:
        sys.exit(1)
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w", encoding="utf-8") as file:
            yaml.safe_dump_all([part for document in documents
                                for part in embedded(document)], file)


if __name__ == "__main__":
    main()
