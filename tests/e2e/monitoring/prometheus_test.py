"""A Prometheus server scrapes all processes of a job, and answers the queries
of the dashboard."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

from built_in_job import BuiltInJob, get, wait_for

ROOT = pathlib.Path(__file__).parents[3]
RULES = ROOT / "deploy/prometheus"
SETTINGS = ["train_steps=1000000", "model.hidden_units=8", "batch_size=32",
            "checkpoint.every=1s"]


def queries(dashboard):
    """Yields (title, query) of each panel, with Grafana's variables filled in."""
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", "20s")
            yield panel["title"], query.replace("$job", ".*")


class PrometheusTest(unittest.TestCase):

    def start(self, job):
        """Starts a server that scrapes the job each second."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        address = job.ports.address()
        config = pathlib.Path(folder.name) / "prometheus.yml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES / "lockstep.rules.yml")],
            "scrape_configs": [{
                "job_name": "lockstep", "honor_labels": True,
                "static_configs": [{"targets": [
                    job.status_address(*task) for task in job.TASKS]}]}]}))
        server = subprocess.Popen(
            ["prometheus", f"--config.file={config}",
             f"--storage.tsdb.path={folder.name}/data",
             f"--web.listen-address={address}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.api = f"http://{address}/api/v1/"

    def ask(self, what, **arguments):
        try:
            text = get(self.api + what + "?" + urllib.parse.urlencode(arguments))
        except OSError:
            return None
        return json.loads(text)["data"]

    def query(self, text):
        """Returns the samples that are numbers."""
        data = self.ask("query", query=text)
        return [sample for sample in (data or {"result": []})["result"]
                if sample["value"][1] != "NaN"]

    def test_server_scrapes_all_and_answers_the_dashboard(self):
        with BuiltInJob(sys.argv[1], SETTINGS) as job:
            job.wait_for_step(5)
            self.start(job)
            wait_for(lambda: len(self.query("up == 1")) == len(job.TASKS),
                     "scrapes of all processes")

            asked = list(queries(json.loads(
                (RULES / "grafana_dashboard.json").read_text())))
            self.assertGreater(len(asked), 20)
            for title, query in asked:
                wait_for(lambda query=query: self.query(query),
                         f"data of the panel {title!r}: {query}")

            for rule in self.ask("rules")["groups"][0]["rules"]:
                self.assertNotEqual(rule["health"], "err", rule)

            self.check_labels_and_names(job)

    def check_labels_and_names(self, job):
        tasks = {(sample["metric"]["task"], sample["metric"]["index"])
                 for sample in self.query("lockstep_build_info")}
        self.assertEqual(tasks, {(task, str(index)) for task, index in job.TASKS})
        for name in ["process_cpu_seconds_total", "process_open_fds",
                     "process_resident_memory_bytes",
                     "process_start_time_seconds"]:
            self.assertEqual(len(self.query(name)), len(job.TASKS), name)
        for phase in ["wait", "pull", "compute", "push"]:
            self.assertEqual(len(self.query(
                f'lockstep_worker_phase_seconds_count{{phase="{phase}"}} > 0')),
                2, phase)
        # Prometheus' own judgement of names, units and help.
        for task in job.TASKS:
            text = get(f"http://{job.status_address(*task)}/metrics")
            checked = subprocess.run(
                ["promtool", "check", "metrics"], input=text, text=True,
                capture_output=True, check=False)
            self.assertEqual(checked.stderr + checked.stdout, "", task)


class RulesTest(unittest.TestCase):

    def test_rules_alert_to_what_they_name(self):
        for command in [["check", "rules", "lockstep.rules.yml"],
                        ["check", "config", "prometheus.yml"],
                        ["test", "rules", "lockstep.rules_test.yml"]]:
            done = subprocess.run(["promtool"] + command, cwd=RULES, text=True,
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_alert_has_a_test(self):
        alerts = re.findall(r"alert: (\w+)",
                            (RULES / "lockstep.rules.yml").read_text())
        tested = (RULES / "lockstep.rules_test.yml").read_text()
        self.assertGreaterEqual(len(alerts), 5)
        for alert in alerts:
            self.assertIn("alertname: " + alert, tested)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
