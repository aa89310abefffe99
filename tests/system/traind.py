"""A traind of one's own: the daemon's process, a JSON-RPC connection, trainctl, and small job documents."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import time

BUILD = os.environ["TRAIND_TEST_BUILD"]
SOURCE = os.environ["TRAIND_TEST_SOURCE"]
TRAIND = os.path.join(BUILD, "daemon", "traind")
TRAINCTL = os.path.join(BUILD, "client", "trainctl")
WORKER = os.path.join(BUILD, "engine", "worker", "traind-worker")
LIMIT = 60.0  # seconds that any wait may take


class Error(Exception):
    """An error reply."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.name = error["data"]["name"]
        self.path = error["data"].get("path", "")


class Connection:
    """Twenty lines of Python are enough for the protocol."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT)
        self.socket.connect(path)
        self.file = self.socket.makefile("rw", encoding="utf-8", newline="\n")
        self.n = 0
        self.events = []

    def call(self, method, **params):
        self.n += 1
        self.file.write(json.dumps({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params}) + "\n")
        self.file.flush()
        while True:
            message = self.read()
            if message.get("id") == self.n:
                if "error" in message:
                    raise Error(message["error"])
                return message["result"]
            self.events.append(message)

    def read(self):
        line = self.file.readline()
        if not line:
            raise EOFError("traind closed the connection")
        return json.loads(line)

    def event(self):
        """The next notification."""
        return self.events.pop(0) if self.events else self.read()

    def close(self):
        with contextlib.suppress(OSError):  # what a daemon that is gone was never sent
            self.file.close()
        self.socket.close()


class Box:
    def __init__(self, folder, devices=2, options=(), before=None, environment=None):
        self.folder = folder
        self.path = os.path.join(folder, "s")
        self.state = os.path.join(folder, "state")
        self.devices = devices
        self.options = list(options)
        self.before = before  # in the daemon's process, before it is traind
        self.environment = {**os.environ, **(environment or {})}
        self.program = TRAIND
        self.mode = ["--user"]
        self.process = None
        self.connections = []

    def start(self):
        log = open(os.path.join(self.folder, "traind.log"), "ab")
        self.process = subprocess.Popen(
            [self.program, *self.mode, "--socket", self.path, "--state", self.state,
             "--cpu-devices", str(self.devices), *self.options],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, env=self.environment,
            preexec_fn=self.before)
        log.close()
        end = time.monotonic() + LIMIT
        while True:
            try:
                self.rpc = self.connect()
                self.rpc.call("server.info")
                return
            except (OSError, EOFError):  # EOF: what a daemon that was killed has left to a child of its own
                assert self.process.poll() is None, self.log()
                assert time.monotonic() < end, "traind did not listen: " + self.log()
                time.sleep(0.01)

    def log(self):
        with open(os.path.join(self.folder, "traind.log"), errors="replace") as file:
            return file.read()

    def connect(self):
        connection = Connection(self.path)
        self.connections.append(connection)
        return connection

    def kill(self):
        """As a crash would: SIGKILL to the daemon alone."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(LIMIT)

    def close(self):
        if self.process.poll() is not None:
            self.start()  # only a daemon can end what is left over
        for job in self.rpc.call("job.list")["jobs"]:
            if job["state"] in ("queued", "starting", "running", "stopping"):
                try:
                    self.rpc.call("job.cancel", ids=[job["id"]])
                except Error:
                    pass
        unfinished = [job["id"] for job in self.rpc.call("job.list")["jobs"]
                      if job["state"] in ("queued", "starting", "running", "stopping")]
        if unfinished:
            self.rpc.call("job.wait", ids=unfinished, timeout=LIMIT)
        for connection in self.connections:
            connection.close()
        self.process.terminate()
        assert self.process.wait(LIMIT) == 0, self.log()

    def submit(self, job, **params):
        return self.rpc.call("job.submit", job=job, cwd=self.folder, **params)["id"]

    def show(self, job):
        return self.rpc.call("job.show", id=job)

    def wait(self, *jobs):
        """The records after all have ended."""
        reply = self.rpc.call("job.wait", ids=list(jobs), timeout=LIMIT)
        assert not reply["timed_out"], [self.show(job) for job in jobs]
        return [self.show(job) for job in jobs]

    def until(self, job, *states, progress=False):
        """Waits by watching until the job is in one of these states (and has reported progress)."""
        watch = self.connect()
        record = next(j for j in watch.call("job.watch", ids=[job])["jobs"] if j["id"] == job)
        end = time.monotonic() + LIMIT
        while record["state"] not in states or (progress and not (record.get("progress") or {}).get("step")):
            assert time.monotonic() < end, record
            event = watch.event()["params"]
            record.update(event.get("record") or {})
        watch.close()
        self.connections.remove(watch)
        return self.show(job)

    def logs(self, job):
        data, offset = "", 0
        while True:
            reply = self.rpc.call("job.logs", id=job, offset=offset)
            data += reply["data"]
            offset = reply["next"]
            if reply["eof"]:
                return data

    def worker_pid(self, job):
        with open(os.path.join(self.state, "jobs", str(job), "worker.json")) as file:
            return json.load(file)["pid"]

    def shim_pid(self, job):
        with open(os.path.join(self.state, "jobs", str(job), "shim.json")) as file:
            return json.load(file)["pid"]

    def trainctl(self, *args, **kwargs):
        return subprocess.run([TRAINCTL, "--socket", self.path, *args], capture_output=True, text=True,
                              timeout=LIMIT, cwd=kwargs.pop("cwd", self.folder), **kwargs)


def run_worker(job, folder, devices="cpu:0", cpu_devices=2, output="out", document=None):
    """traind-worker run, without any daemon: (exit status, standard output, standard error)."""
    path = os.path.join(folder, "job.json")
    with open(path, "w") as file:
        file.write(document if document is not None else json.dumps(job))
    done = subprocess.run([WORKER, "run", path, "--devices", devices, "--cpu-devices", str(cpu_devices),
                           "--output", os.path.join(folder, output)],
                          capture_output=True, text=True, timeout=LIMIT, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def linear(epochs=1, batch=30, samples=100, devices=1, **extra):
    """The DataParallel tutorial's model and data."""
    parallel = {"mode": "replicate", "devices": devices} if devices > 1 else {"mode": "single"}
    return {"version": 1, "name": "linear",
            "model": {"input": {"shape": [5]}, "layers": [{"type": "Linear", "name": "fc", "out_features": 2}]},
            "data": {"train": {"format": "random", "samples": samples, "seed": 1}, "shuffle": False},
            "loss": {"type": "MSELoss"}, "optimizer": {"type": "SGD", "lr": 0.01},
            "train": {"epochs": epochs, "batch_size": batch, "seed": 1, **extra},
            "parallel": parallel}


def endless(devices=1):
    """A job that runs until it is stopped, with a step every few milliseconds."""
    job = linear(epochs=1000000, batch=100, samples=20000, devices=devices)
    job["name"] = "endless"
    job["model"]["layers"] = [{"type": "Linear", "out_features": 512}, {"type": "ReLU"},
                              {"type": "Linear", "out_features": 512}, {"type": "ReLU"},
                              {"type": "Linear", "out_features": 2}]
    job["train"]["log_every"] = 10
    return job


def living(pid):
    """Whether the process is there and not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_gone(pid):
    """Waits until the process has ended, through a pidfd."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], LIMIT)[0], f"process {pid} is still there"
    finally:
        os.close(fd)
