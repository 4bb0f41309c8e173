"""Resolves the references of manifests, as a cluster would:

    check_manifests.py MANIFEST [GIVEN]

MANIFEST is rendered. GIVEN is another rendered manifest, of objects that are
there before, such as the ConfigMap and the claim that the examples take from the
base. Looks up each selector, subdomain, volume, ConfigMap, Secret, claim, port
and file, and each address of cluster.json, in the pods that come of MANIFEST.
Prints what leads nowhere, each with its place, and leaves with 1 if anything
does.
"""

import json
import os
import re
import sys

import yaml

from manifest_pods import pods_of

UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "": 1}


def quantity(text):
    number, unit = re.fullmatch(r"([0-9.]+)([KMG]i)?", str(text)).groups()
    return float(number) * UNITS[unit or ""]


def selects(selector, labels):
    """An empty selector takes all pods; expressions are In, NotIn, Exists."""
    wanted = selector.get("matchLabels", {})
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    for rule in selector.get("matchExpressions", []):
        value = labels.get(rule["key"])
        if not {"In": value in rule.get("values", []),
                "NotIn": value not in rule.get("values", []),
                "Exists": value is not None,
                "DoesNotExist": value is None}[rule["operator"]]:
            return False
    return True


def check_budget(budget, pods):
    """The disruption controller cannot count what a Job wants to have: it fails
    at maxUnavailable and then lets no pod go."""
    where = f"PodDisruptionBudget {budget['metadata']['name']}"
    spec = budget["spec"]
    chosen = sum(selects(spec.get("selector", {}), pod.labels) for pod in pods)
    if "maxUnavailable" in spec:
        yield f"{where}: maxUnavailable lets no pod of a Job go; use minAvailable"
    elif spec.get("minAvailable") != chosen - 1:
        yield (f"{where}: minAvailable is {spec.get('minAvailable')}, not all but "
               f"one of {chosen} pods")


def ports_of(pod):
    """{name or number: number} of the ports that the pod says it has."""
    ports = {number: number for number in pod.ports}
    for container in pod.spec["containers"]:
        for port in container.get("ports", []):
            ports[port["containerPort"]] = port["containerPort"]
            if "name" in port:
                ports[port["name"]] = port["containerPort"]
    return ports


class Objects:
    """The objects of one or more manifests by kind and name."""

    def __init__(self, documents):
        self.by_name = {}
        self.twice = []
        for document in documents:
            key = (document["kind"], document["metadata"]["name"])
            if key in self.by_name:
                self.twice.append(key)
            self.by_name[key] = document

    def get(self, kind, name):
        return self.by_name.get((kind, name))

    def all(self, kind):
        return [document for (k, _), document in self.by_name.items() if k == kind]


def check_selector(where, selector, pods):
    chosen = [pod for pod in pods if selects(selector, pod.labels)]
    if not chosen:
        yield f"{where}: selects no pod with {json.dumps(selector)}"


def check_service(service, pods):
    where = f"Service {service['metadata']['name']}"
    spec = service["spec"]
    selector = {"matchLabels": spec.get("selector", {})}
    yield from check_selector(where, selector, pods)
    for port in spec.get("ports", []):
        target = port.get("targetPort", port["port"])
        for pod in pods:
            if not selects(selector, pod.labels):
                continue
            number = ports_of(pod).get(target)
            if number is None:
                yield f"{where}: {pod.where} has no port {target}"
            elif spec.get("clusterIP") == "None" and number != port["port"]:
                yield (f"{where}: is headless, so its port {port['port']} cannot "
                       f"lead to port {number} of {pod.where}")


def check_subdomain(pod, objects):
    """A pod has a name only where a headless Service of that name selects it."""
    if not pod.service:
        return
    service = objects.get("Service", pod.service)
    if service is None:
        yield f"{pod.where}: there is no Service {pod.service} for its subdomain"
        return
    spec = service["spec"]
    if spec.get("clusterIP") != "None":
        yield f"Service {pod.service}: is not headless, so pods have no names"
    if not spec.get("publishNotReadyAddresses"):
        yield f"Service {pod.service}: hides pods that wait for their peers' names"
    if not selects({"matchLabels": spec.get("selector", {})}, pod.labels):
        yield (f"{pod.where}: Service {pod.service} does not select it, so no name "
               f"{' or '.join(pod.names)} exists")


def source_of(volume):
    """(kind, name, optional) of the object that a volume shows; or None."""
    for key, kind, field in (("configMap", "ConfigMap", "name"),
                             ("secret", "Secret", "secretName"),
                             ("persistentVolumeClaim", "PersistentVolumeClaim",
                              "claimName")):
        if key in volume:
            return kind, volume[key][field], volume[key].get("optional", False)
    return None


def check_volumes(pod, objects):
    volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", [])}
    mounted = set()
    for container in pod.spec["containers"]:
        for mount in container.get("volumeMounts", []):
            mounted.add(mount["name"])
            if mount["name"] not in volumes:
                yield f"{pod.where}: there is no volume {mount['name']}"
    for name in set(volumes) - mounted:
        yield f"{pod.where}: nothing mounts the volume {name}"
    for volume in volumes.values():
        source = source_of(volume)
        if source and source[0] == "Secret":
            continue  # made by cert-manager or by kubectl, never a manifest
        if source and not source[2] and objects.get(*source[:2]) is None:
            yield f"{pod.where}: there is no {source[0]} {source[1]}"


def check_environment(pod, objects):
    for container in pod.spec["containers"]:
        for variable in container.get("env", []):
            for key, kind in (("configMapKeyRef", "ConfigMap"),
                              ("secretKeyRef", "Secret")):
                reference = variable.get("valueFrom", {}).get(key)
                if reference is None or reference.get("optional"):
                    continue
                held = objects.get(kind, reference["name"]) or {}
                if reference["key"] not in held.get("data", {}):
                    yield (f"{pod.where}: {variable['name']}: {kind} "
                           f"{reference['name']} has no {reference['key']}")


def check_probes(pod):
    ports = ports_of(pod)
    for container in pod.spec["containers"]:
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            for action in container.get(probe, {}).values():
                port = action.get("port") if isinstance(action, dict) else None
                if port is not None and port not in ports:
                    yield f"{pod.where}: {probe}: there is no port {port}"


def check_metrics(pod):
    """A pod that asks to be scraped serves metrics at the port that it names."""
    port = pod.annotations.get("prometheus.io/port")
    if pod.annotations.get("prometheus.io/scrape") != "true":
        return
    if port is None or int(port) not in ports_of(pod):
        yield f"{pod.where}: prometheus.io/port: there is no port {port}"
    if not any(arg.startswith("--status_address=") and arg.endswith(f":{port}")
               for container in pod.spec["containers"]
               for arg in container.get("args", [])):
        yield f"{pod.where}: no --status_address has the port {port}"


def check_memory(pod):
    """Files of a volume in memory count as memory of the container."""
    volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", [])}
    for container in pod.spec["containers"]:
        limit = container.get("resources", {}).get("limits", {}).get("memory")
        if limit is None:
            yield f"{pod.where}: {container['name']} has no limit of memory"
        for mount in container.get("volumeMounts", []):
            held = volumes.get(mount["name"], {}).get("emptyDir") or {}
            size = held.get("sizeLimit")
            if held.get("medium") == "Memory" and not size:
                yield (f"{pod.where}: volume {mount['name']} in memory has no "
                       f"sizeLimit")
            if limit and size and quantity(size) >= quantity(limit):
                yield (f"{pod.where}: volume {mount['name']} of {size} leaves "
                       f"nothing of the container's {limit}")


def check_exposure(pod):
    """A program that other pods reach needs certificates, or that it is told to do
    without; a program of the user's own is told by its environment."""
    for container in pod.spec["containers"]:
        args = [str(arg) for arg in container.get("args", [])]
        own = "--" in args
        told = ({variable["name"] for variable in container.get("env", [])} &
                {"LOCKSTEP_INSECURE", "LOCKSTEP_TLS_DIR"} if own else
                [arg for arg in args
                 if arg == "--insecure" or arg.startswith("--tls_dir")])
        if not told:
            yield (f"{pod.where}: {container['name']} has neither certificates nor "
                   f"{'LOCKSTEP_INSECURE' if own else '--insecure'}, so it refuses "
                   f"to listen")


def check_threads(pod):
    """The built-in worker computes with one thread if it is told no number."""
    for container in pod.spec["containers"]:
        args = [str(arg) for arg in container.get("args", [])]
        cpu = str(container.get("resources", {}).get("requests", {}).get("cpu", ""))
        if (any(arg.startswith("--data_root=") for arg in args) and
                cpu.isdecimal() and int(cpu) > 1 and
                f"--compute_threads={cpu}" not in args):
            yield (f"{pod.where}: {container['name']} requests {cpu} processors, but "
                   f"has no --compute_threads={cpu}")


def mount_of(pod, path):
    """The mount of the pod's container that has the path, or None."""
    best = None
    for mount in pod.spec["containers"][0].get("volumeMounts", []):
        point = mount["mountPath"]
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and (best is None or len(point) > len(best["mountPath"])):
            best = mount
    return best


def file_text(pod, objects, path):
    """The text that the pod reads at the path, from a ConfigMap; or None."""
    mount = mount_of(pod, path)
    volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", [])}
    source = source_of(volumes.get(mount["name"], {})) if mount else None
    if source is None or source[0] != "ConfigMap":
        return None
    held = objects.get(*source[:2]) or {}
    return held.get("data", {}).get(os.path.relpath(path, mount["mountPath"]))


def argument(args, flag):
    return args[args.index(flag) + 1] if flag in args else None


def files_read(pod):
    """{"cluster" or "job": path}, the files that the pod's program reads."""
    args = [str(arg) for arg in pod.spec["containers"][0].get("args", [])]
    files = {}
    if "task" in args:
        role = args.index(pod.role)  # task [--pod_index] ROLE JOB
        folder = f"/etc/lockstep/{args[role + 1]}"
        files["cluster"] = f"{folder}/cluster.json"
        if pod.role == "chief":
            files["job"] = f"{folder}/job.textproto"
    elif argument(args, "--job"):
        files["job"] = argument(args, "--job")
    return files


def check_files(pods, objects):
    """The files that programs read, and those that the job names, are mounted."""
    jobs = set()
    roles = {pod.role for pod in pods}
    # Without servers the chief computes, too.
    computing = {"worker", "evaluator"} | (set() if "ps" in roles else {"chief"})
    for pod in pods:
        args = [str(arg) for arg in pod.spec["containers"][0].get("args", [])]
        for kind, path in files_read(pod).items():
            text = file_text(pod, objects, path)
            if text is None:
                yield f"{pod.where}: nothing gives it the file {path}"
            elif kind == "job":
                jobs.add(text)
        state = argument(args, "--state_dir")
        if state and mount_of(pod, state) is None:
            yield f"{pod.where}: no volume for --state_dir {state}"
        if "ps" not in roles and pod.role in ("chief", "worker") and not state:
            yield f"{pod.where}: no --state_dir for its copy of the variables"
        if pod.role == "chief" and "job" not in files_read(pod):
            yield f"{pod.where}: is given no job"
    for text in jobs:
        data = re.findall(r'"(/[^"]+)"', text)
        directory = re.findall(r'directory:\s*"([^"]+)"', text)
        for pod in pods:
            for path in data:
                wanted = (pod.role in ("chief", "evaluator")
                          if path in directory else
                          pod.role in computing)
                if wanted and mount_of(pod, path) is None:
                    yield f"{pod.where}: no volume has {path} of the job"


def check_cluster(pods, objects):
    """Each address of cluster.json is the name and port of that very pod."""
    by_task = {(pod.role, pod.index): pod for pod in pods}
    texts = {file_text(pod, objects, files_read(pod)["cluster"])
             for pod in pods if "cluster" in files_read(pod)}
    for text in texts - {None}:
        tasks = {(role, index): address
                 for role, addresses in json.loads(text)["cluster"].items()
                 for index, address in enumerate(addresses)}
        for task in sorted(set(by_task) - set(tasks)):
            yield f"cluster.json: lacks {task[0]} {task[1]}, which has a pod"
        for (role, index), address in tasks.items():
            pod = by_task.get((role, index))
            host, _, port = address.rpartition(":")
            if pod is None:
                yield f"cluster.json: {role} {index} has no pod"
            elif host not in pod.names:
                yield (f"cluster.json: {role} {index} is {host}, but its pod is "
                       f"{' or '.join(pod.names) or 'without a name'}")
            elif ports_of(pod) and int(port) not in ports_of(pod):
                yield f"cluster.json: {role} {index}: {pod.where} has no port {port}"
    for pod in pods:
        if not pod.configured and "cluster" not in files_read(pod):
            yield f"{pod.where}: nothing gives it a cluster"


def mistakes(documents, given):
    objects = Objects(given)
    own = Objects(documents)
    objects.by_name.update(own.by_name)
    pods = [pod for document in documents for pod in pods_of(document)]
    found = [f"{kind} {name}: is there twice" for kind, name in own.twice]
    if not pods:
        found.append("no pod comes of this")
    for service in own.all("Service"):
        found += check_service(service, pods)
    for budget in own.all("PodDisruptionBudget"):
        found += check_budget(budget, pods)
    for kind, key in (("PodDisruptionBudget", "selector"),
                      ("NetworkPolicy", "podSelector")):
        for document in own.all(kind):
            found += check_selector(f"{kind} {document['metadata']['name']}",
                                    document["spec"].get(key, {}), pods)
    for pod in pods:
        found += check_subdomain(pod, own)
        found += check_volumes(pod, objects)
        found += check_environment(pod, objects)
        found += check_probes(pod)
        found += check_metrics(pod)
        found += check_memory(pod)
        found += check_exposure(pod)
        found += check_threads(pod)
    found += check_files(pods, objects)
    found += check_cluster(pods, objects)
    return list(dict.fromkeys(found))  # each once, pods of one template are alike


def read(path):
    with open(path, encoding="utf-8") as file:
        return [document for document in yaml.safe_load_all(file) if document]


def main():
    found = mistakes(read(sys.argv[1]),
                     read(sys.argv[2]) if len(sys.argv) > 2 else [])
    for text in found:
        print(f"{sys.argv[1]}: {text}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
