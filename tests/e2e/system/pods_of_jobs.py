"""Turns the rendered Jobs of deploy/kubernetes into the pods that Kubernetes
would make of them, and a TFJob into those of Kubeflow's operator, for `podman kube
play` on one host without name service:

    pods_of_jobs.py RENDERED CLUSTER_JSON VOLUMES STEPS >PODS

The job makes STEPS steps.

Tasks are named instead of taken from the pod's name, addresses come from
CLUSTER_JSON, volumes are directories below VOLUMES, those of certificates
VOLUMES/tls/ROLE-INDEX, and what podman does not know in this form, as probes, is
left out. Ports of metrics differ, since all pods share the host's addresses: 9100,
9101 and so on, in the order of the pods. Pods of a TFJob get the TF_CONFIG that the
operator writes.
"""

import itertools
import json
import sys

import yaml


def config_map(document, cluster, steps):
    files = document["data"]
    files["cluster.json"] = cluster
    files["job.textproto"] = "\n".join(
        f"train_steps: {steps}" if line.startswith("train_steps:") else line
        for line in files["job.textproto"].split("\n"))
    return document


def volume(name, task, volumes):
    path = {"data": "/usr/share/datasets",
            "tls": f"{volumes}/tls/{task}"}.get(name, f"{volumes}/{name}")
    return {"name": name, "hostPath": {"path": path, "type": "Directory"}}


def placed(spec, role, index, volumes):
    """The pod of a task with the specification, on this host."""
    spec["volumes"] = [
        v if "configMap" in v else volume(v["name"], f"{role}-{index}", volumes)
        for v in spec["volumes"]]
    if role == "worker":  # another pod is made
        spec["restartPolicy"] = "OnFailure"
    spec["hostNetwork"] = True
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"fashion-{role}-{index}"}, "spec": spec}


def operator_pod(replica, role, index, cluster, volumes):
    spec = json.loads(json.dumps(replica["template"]["spec"]))
    spec["restartPolicy"] = "Never"
    tf_config = dict(json.loads(cluster), environment="cloud",
                     task={"type": role, "index": index})
    spec["containers"][0]["env"] = [
        {"name": "TF_CONFIG", "value": json.dumps(tf_config)}]
    return placed(spec, role, index, volumes)


def pod(job, index, volumes, ports):
    spec = json.loads(json.dumps(job["spec"]["template"]["spec"]))
    role = job["spec"]["template"]["metadata"]["labels"]["lockstep/role"]
    container = spec["containers"][0]
    for key in ("startupProbe", "readinessProbe", "livenessProbe", "resources",
                "ports"):
        container.pop(key, None)  # a user's program has no probes
    args = [a for a in container["args"] if a != "--pod_index"]
    container["args"] = [f"fashion.{index}" if a == "fashion" else a for a in args]
    for i, arg in enumerate(container["args"]):
        if arg.startswith("--status_address="):
            container["args"][i] = arg.replace(":9100", f":{next(ports)}")
    spec.pop("subdomain")
    return placed(spec, role, index, volumes)


def main():
    rendered, cluster_path, volumes, steps = sys.argv[1:]
    with open(cluster_path, encoding="utf-8") as file:
        cluster = file.read()
    documents = []
    ports = itertools.count(9100)
    with open(rendered, encoding="utf-8") as file:
        for document in yaml.safe_load_all(file):
            if document["kind"] == "ConfigMap":
                documents.append(config_map(document, cluster, steps))
            if document["kind"] == "Job":
                documents += [pod(document, i, volumes, ports)
                              for i in range(document["spec"]["completions"])]
            if document["kind"] == "TFJob":
                documents += [
                    operator_pod(replica, role.lower(), i, cluster, volumes)
                    for role, replica in document["spec"]["tfReplicaSpecs"].items()
                    for i in range(replica["replicas"])]
    yaml.safe_dump_all(documents, sys.stdout)


if __name__ == "__main__":
    main()
