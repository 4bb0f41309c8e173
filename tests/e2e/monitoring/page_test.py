"""Chromium shows the page of a job: with scripts it updates itself, and without
them it says the same. What is bad HTTP does nothing to the job."""

import http.server
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

from built_in_job import BuiltInJob, get, wait_for

SETTINGS = ["train_steps=1000000", "model.hidden_units=8", "batch_size=32",
            "checkpoint.every=1s"]
LINE = r"<polyline [^>]*points=\"[\d., ]{20,}\""
PARTS = ["head", "cards", "charts", "workers", "servers", "story"]


def browse(url):
    """Returns the document that Chromium has after some seconds, and what the
    page's script complained about."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", f"--user-data-dir={profile}",
             "--enable-logging=stderr", "--virtual-time-budget=9000",
             "--dump-dom", url],
            capture_output=True, text=True, timeout=240, check=True)
    complaints = [line for line in done.stderr.splitlines()
                  if "CONSOLE" in line]
    return done.stdout, complaints


class Repeater(http.server.BaseHTTPRequestHandler):
    """Answers as the chief did once, with a step that counts the requests."""

    page = ""
    headers_of_page = {}
    requests = 0
    fail_after = None

    def do_GET(self):
        if self.path != "/":
            return self.send_error(404)
        Repeater.requests += 1
        if self.fail_after is not None and self.requests > self.fail_after:
            return self.send_error(503)
        body = re.sub(r"step <b>\d+</b>", f"step <b>{9000 + self.requests}</b>",
                      self.page).encode()
        self.send_response(200)
        for name in ["Content-Type", "Content-Security-Policy"]:
            self.send_header(name, self.headers_of_page[name])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        return None

    def log_message(self, *arguments):
        pass


class PageTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.job = BuiltInJob(sys.argv[1], SETTINGS)
        cls.job.__enter__()
        cls.addClassCleanup(cls.job.__exit__, None, None, None)
        cls.job.wait_for_step(50)
        cls.address = cls.job.status_address("chief", 0)
        cls.url = f"http://{cls.address}/"
        wait_for(lambda: all(f'id="{part}"' in get(cls.url) for part in PARTS)
                 and re.search(LINE, get(cls.url)), "all parts of the page")

    def repeat(self, change=lambda page: page, fail_after=None):
        """Serves the page of now from another port; returns its address."""
        with urllib.request.urlopen(self.url) as answer:
            Repeater.page = change(answer.read().decode())
            Repeater.headers_of_page = dict(answer.headers)
        Repeater.requests = 0
        Repeater.fail_after = fail_after
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Repeater)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_address[1]}/"

    def check_parts(self, document):
        for part in PARTS:
            self.assertIn(f'id="{part}"', document)
        self.assertRegex(document, LINE)
        self.assertIn("worker 1", document)

    def test_browser_shows_the_page_and_finds_no_fault(self):
        document, complaints = browse(self.url)
        self.check_parts(document)
        self.assertEqual(complaints, [])

    def test_page_updates_itself(self):
        document, complaints = browse(self.repeat())
        step = int(re.search(r"step <b>9(\d+)</b>", document)[1])
        self.assertGreaterEqual(step, 3)
        self.check_parts(document)
        self.assertEqual(complaints, [])

    def test_page_says_when_it_is_old(self):
        document, _ = browse(self.repeat(fail_after=1))
        self.assertIn("step <b>9001</b>", document)
        self.assertRegex(document, r'class="old">no answer for \d+ s')

    # The policy stops a changed script, so that the page is one without scripts.
    def test_page_is_whole_where_its_script_does_not_run(self):
        url = self.repeat(lambda page: page.replace(
            "<script>", "<script>document.title = 'taken over';"))
        document, complaints = browse(url)
        self.assertNotIn("<title>taken over", document)
        self.assertIn("Content Security Policy", "".join(complaints))
        self.check_parts(document)

    def test_status_is_that_of_the_command(self):
        shown = subprocess.run(
            [self.job.programs / "lockstep", "status", "--json", "--chief",
             self.job.cluster["chief"][0]],
            capture_output=True, text=True, check=True).stdout

        def shape(value):
            if isinstance(value, dict):
                return {name: shape(part) for name, part in value.items()}
            if isinstance(value, list):
                return [shape(part) for part in value]
            return isinstance(value, (int, float)) or value
        served = get(self.url + "status.json")
        first, second = json.loads(shown), json.loads(served)
        self.assertEqual(list(first), list(second))
        for changing in ["waits", "members"]:
            self.assertEqual(len(first["members"]), len(second["members"]))
            first.pop(changing), second.pop(changing)
        self.assertEqual(shape(first), shape(second))
        self.assertEqual(shown[:40], served[:40])  # the same layout


class BadHttpTest(unittest.TestCase):

    def test_nothing_that_is_sent_stops_the_job(self):
        with BuiltInJob(sys.argv[1], SETTINGS) as job:
            job.wait_for_step(20)
            host, port = job.status_address("chief", 0).split(":")
            url = f"http://{host}:{port}"

            def connect():
                return socket.create_connection((host, int(port)), timeout=20)

            for path in ["/../etc/passwd", "//", "/status.json/", "/curves.json.new",
                         "/%2e%2e/", "/.", "/page.css"]:
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    get(url + path)
                self.assertEqual(refused.exception.code, 404, path)
            with self.assertRaises(urllib.error.HTTPError) as refused:
                get(url + "/status.json", host="evil.example")
            self.assertEqual(refused.exception.code, 421)
            for method in ["POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]:
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(
                        urllib.request.Request(url + "/", method=method))
                self.assertEqual(refused.exception.code, 405, method)

            before = job.status()["global_step"]
            slow = [connect() for _ in range(10)]
            for each in slow:
                each.send(b"GET / HT")
            huge = connect()
            try:
                huge.sendall(b"GET /" + b"x" * (32 << 20))
            except OSError:
                pass
            many = []
            for _ in range(2000):
                try:
                    many.append(connect())
                except OSError:
                    break
            # Peers that ask, and do not read.
            for each in many[-20:]:
                try:
                    each.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                except OSError:
                    pass
            memory = int(re.search(
                r"VmRSS:\s+(\d+)",
                open(f"/proc/{job.processes['chief', 0].pid}/status").read())[1])
            self.assertLess(memory, 400_000)  # KiB
            for each in [*slow, huge, *many]:
                each.close()
            # The page is there again, and the job went on meanwhile.
            def answered():
                try:
                    return job.status()["global_step"] > before
                except OSError:
                    return False
            wait_for(answered, "steps after bad requests")
            for process in job.processes.values():
                self.assertIsNone(process.poll())


class RestartedChiefTest(unittest.TestCase):

    def test_curves_go_on_after_the_chief_was_killed(self):
        with BuiltInJob(sys.argv[1], SETTINGS) as job:
            record = job.logs / "checkpoints/page.json"

            def points_of(text):
                curves = json.loads(text)["curves"]
                return curves.get("loss", {"points": []})["points"]
            kept = wait_for(
                lambda: record.exists() and points_of(record.read_text()),
                "a curve beside the checkpoints")
            chief = job.processes["chief", 0]
            chief.send_signal(signal.SIGKILL)
            chief.wait()
            time.sleep(1)
            (job.logs / "chief-0.log").rename(job.logs / "chief-before.log")
            job.start("chief", 0)
            address = job.status_address("chief", 0)

            def goes_on():
                points = points_of(get(f"http://{address}/curves.json"))
                return points and points[-1][0] > kept[-1][0] and points
            points = wait_for(goes_on, "points after the restart")
            self.assertEqual(points[0], kept[0])
            self.assertIn("training begins at step", get(f"http://{address}/"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
