"""Checks cert-manager's resources against the pods that read their Secrets:

    check_certificates.py CERTIFICATES MANIFEST...

Each Secret that a pod mounts at --tls_dir must be that of a Certificate with the name
of the pod's role, for servers and clients, of an authority that is no role itself.
Prints what is wrong, each with its place, and leaves with 1 if anything is.
"""

import sys

import yaml

USAGES = {"digital signature", "server auth", "client auth"}


def documents(path):
    with open(path, encoding="utf-8") as file:
        return [document for document in yaml.safe_load_all(file) if document]


def pod_specs(value):
    """Each specification of a pod, however deep."""
    if isinstance(value, dict):
        if "containers" in value and "volumes" in value:
            yield value
        for part in value.values():
            yield from pod_specs(part)
    elif isinstance(value, list):
        for part in value:
            yield from pod_specs(part)


def check_certificate(certificate, issuers):
    where = f"Certificate {certificate['metadata']['name']}"
    spec = certificate["spec"]
    if spec["issuerRef"]["name"] not in issuers:
        yield f"{where}: there is no Issuer {spec['issuerRef']['name']}"
    if spec.get("isCA"):
        if spec.get("uris"):
            yield f"{where}: an authority is no task, but has uris"
        return
    for missing in USAGES - set(spec.get("usages", [])):
        yield f"{where}: usages: {missing} is missing"
    if not spec.get("uris"):
        yield f"{where}: uris: none, so it may call nothing"


def check_pod(where, pod, by_secret):
    for container in pod["containers"]:
        args = [str(arg) for arg in container.get("args", [])]
        if "--insecure" in args:
            yield f"{where}: --insecure"
        paths = [arg.split("=", 1)[1] for arg in args if arg.startswith("--tls_dir=")]
        if len(paths) != 1:
            yield f"{where}: {len(paths)} times --tls_dir"
            continue
        mounts = {m["mountPath"]: m["name"] for m in container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        secret = volumes.get(mounts.get(paths[0]), {}).get("secret", {})
        name = secret.get("secretName", "no Secret")
        role = name.removeprefix("fashion-").removesuffix("-tls")
        if secret.get("defaultMode") != 0o440:
            yield f"{where}: {name}: defaultMode is not 0440"
        if by_secret.get(name) != [f"lockstep://fashion/{role}/*"]:
            yield f"{where}: {name}: its certificate has {by_secret.get(name)}"
        if not pod.get("securityContext", {}).get("fsGroup"):
            yield f"{where}: no fsGroup, so the program cannot read {name}"
        if not container.get("resources", {}).get("limits", {}).get("memory"):
            yield f"{where}: no limit of memory"


def main():
    made = documents(sys.argv[1])
    issuers = {d["metadata"]["name"] for d in made if d["kind"] == "Issuer"}
    certificates = [d for d in made if d["kind"] == "Certificate"]
    by_secret = {c["spec"]["secretName"]: c["spec"].get("uris") for c in certificates}
    found = [text for c in certificates for text in check_certificate(c, issuers)]
    pods = 0
    for path in sys.argv[2:]:
        for document in documents(path):
            for pod in pod_specs(document):
                pods += 1
                found += check_pod(f"{path}: pod {pods}", pod, by_secret)
    for text in found:
        print(text)
    if found or pods == 0:
        sys.exit(1)


if __name__ == "__main__":
    main()
