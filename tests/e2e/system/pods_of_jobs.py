"""Turns the rendered Jobs of deploy/kubernetes into the pods that Kubernetes
would make of them, for `podman kube play` on one host without name service:

    pods_of_jobs.py RENDERED CLUSTER_JSON VOLUMES >PODS

Tasks are named instead of taken from the pod's name, addresses come from
CLUSTER_JSON, volumes are directories below VOLUMES, those of certificates
VOLUMES/tls/ROLE-INDEX, and what podman does not know in this form, as probes, is
left out. Ports of metrics differ, since all pods share the host's addresses: 9100,
9101 and so on, in the order of the pods.
"""

import itertools
import json
import sys

import yaml

TRAIN_STEPS = 1000


def config_map(document, cluster):
    files = document["data"]
    files["cluster.json"] = cluster
    files["job.textproto"] = "\n".join(
        f"train_steps: {TRAIN_STEPS}" if line.startswith("train_steps:") else line
        for line in files["job.textproto"].split("\n"))
    return document


def volume(name, task, volumes):
    path = {"data": "/usr/share/datasets",
            "tls": f"{volumes}/tls/{task}"}.get(name, f"{volumes}/{name}")
    return {"name": name, "hostPath": {"path": path, "type": "Directory"}}


def pod(job, index, volumes, ports):
    spec = json.loads(json.dumps(job["spec"]["template"]["spec"]))
    role = job["spec"]["template"]["metadata"]["labels"]["lockstep/role"]
    container = spec["containers"][0]
    for key in ("startupProbe", "readinessProbe", "livenessProbe", "resources",
                "ports"):
        container.pop(key)
    args = [a for a in container["args"] if a != "--pod_index"]
    container["args"] = [f"fashion.{index}" if a == "fashion" else a for a in args]
    for i, arg in enumerate(container["args"]):
        if arg.startswith("--status_address="):
            container["args"][i] = arg.replace(":9100", f":{next(ports)}")
    spec["volumes"] = [
        v if "configMap" in v else volume(v["name"], f"{role}-{index}", volumes)
        for v in spec["volumes"]]
    if role == "worker":  # a Job makes another pod
        spec["restartPolicy"] = "OnFailure"
    spec["hostNetwork"] = True
    spec.pop("subdomain")
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"fashion-{role}-{index}"}, "spec": spec}


def main():
    rendered, cluster_path, volumes = sys.argv[1:]
    with open(cluster_path, encoding="utf-8") as file:
        cluster = file.read()
    documents = []
    ports = itertools.count(9100)
    with open(rendered, encoding="utf-8") as file:
        for document in yaml.safe_load_all(file):
            if document["kind"] == "ConfigMap":
                documents.append(config_map(document, cluster))
            if document["kind"] == "Job":
                documents += [pod(document, i, volumes, ports)
                              for i in range(document["spec"]["completions"])]
    yaml.safe_dump_all(documents, sys.stdout)


if __name__ == "__main__":
    main()
