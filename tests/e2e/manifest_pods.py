"""The pods that Kubernetes and other people's operators make of manifests.

pods_of(document) gives the Pods of one document; what is no workload has none.
The names follow the operators' documents: Job and JobSet give their indexed pods
host names, Volcano's plugin `svc` and Kubeflow's operator make Services.
"""

import dataclasses


@dataclasses.dataclass
class Pod:
    where: str  # the place in the document, for messages
    role: str  # what the cluster calls it: chief, ps, worker, evaluator
    index: int
    labels: dict
    spec: dict
    names: list  # the names by which other pods find it
    service: str = ""  # the Service of the manifests that gives it its name
    configured: bool = False  # an operator writes TF_CONFIG
    ports: tuple = ()  # that an operator adds
    annotations: dict = dataclasses.field(default_factory=dict)


def _labels(template):
    return template.get("metadata", {}).get("labels", {})


def _job_pods(name, spec, labels, where, role):
    """Pods of an indexed Job: NAME-INDEX.SUBDOMAIN once a Service selects them."""
    template = spec["template"]
    subdomain = template["spec"].get("subdomain", "")
    indexed = spec.get("completionMode") == "Indexed"
    for index in range(spec.get("completions", 1)):
        yield Pod(where=where, role=role, index=index,
                  labels={**labels, **_labels(template), "job-name": name,
                          "batch.kubernetes.io/job-name": name},
                  spec=template["spec"],
                  names=[f"{name}-{index}.{subdomain}"] if indexed else [],
                  service=subdomain,
                  annotations=template.get("metadata", {}).get(
                      "annotations", {}))


def _job(document):
    name = document["metadata"]["name"]
    labels = _labels(document["spec"]["template"])
    role = labels.get("lockstep/role", name.rsplit("-", 1)[-1])
    yield from _job_pods(name, document["spec"], {}, f"Job {name}", role)


def _job_set(document):
    name = document["metadata"]["name"]
    network = document["spec"].get("network", {})
    subdomain = network.get("subdomain", name)
    for job in document["spec"]["replicatedJobs"]:
        role = job["name"]
        for replica in range(job.get("replicas", 1)):
            made = f"{name}-{role}-{replica}"
            for pod in _job_pods(made, job["template"]["spec"],
                                 {"jobset.sigs.k8s.io/jobset-name": name},
                                 f"JobSet {name}, {role}", role):
                named = network.get("enableDNSHostnames", True)
                pod.names = [f"{made}-{pod.index}.{subdomain}"] if named else []
                pod.service = ""  # the operator makes it
                yield pod


def _tf_job(document):
    name = document["metadata"]["name"]
    for kind, replica in document["spec"]["tfReplicaSpecs"].items():
        role = kind.lower()
        for index in range(replica.get("replicas", 1)):
            yield Pod(where=f"TFJob {name}, {kind}", role=role, index=index,
                      labels={"training.kubeflow.org/job-name": name,
                              **_labels(replica["template"])},
                      spec=replica["template"]["spec"],
                      names=[f"{name}-{role}-{index}"], configured=True,
                      ports=(2222,))


def _volcano_job(document):
    name = document["metadata"]["name"]
    plugins = document["spec"].get("plugins", {})
    for task in document["spec"]["tasks"]:
        for index in range(task.get("replicas", 1)):
            made = f"{name}-{task['name']}-{index}"
            yield Pod(where=f"Job {name}, {task['name']}", role=task["name"],
                      index=index,
                      labels={"volcano.sh/job-name": name,
                              **_labels(task["template"])},
                      spec=task["template"]["spec"],
                      names=[f"{made}.{name}"] if "svc" in plugins else [],
                      configured="tensorflow" in plugins, ports=(2222,))


_MAKERS = {
    ("batch/v1", "Job"): _job,
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): _job_set,
    ("kubeflow.org/v1", "TFJob"): _tf_job,
    ("batch.volcano.sh/v1alpha1", "Job"): _volcano_job,
}


def pods_of(document):
    maker = _MAKERS.get((document.get("apiVersion"), document.get("kind")))
    return list(maker(document)) if maker else []
