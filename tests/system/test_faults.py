"""Bad input and bad ends: each with its own message, the daemon alive, nothing left behind."""

import glob
import gzip
import json
import os
import resource
import signal
import stat
import struct
import subprocess
import time

import pytest

from traind import (LIMIT, TRAINCTL, TRAIND, WORKER, Connection, Error, endless, linear, living, run_worker)


def idx(path, shape, values):
    with gzip.open(path, "wb") as file:
        file.write(bytes([0, 0, 8, len(shape)]) + b"".join(struct.pack(">I", n) for n in shape) + bytes(values))


def classifier(folder, labels=(0, 1, 2, 3)):
    idx(os.path.join(folder, "x.gz"), [4, 2, 2], range(16))
    idx(os.path.join(folder, "y.gz"), [4], labels)
    job = linear(batch=2)
    job["model"] = {"input": {"shape": [1, 2, 2]},
                    "layers": [{"type": "Flatten"}, {"type": "Linear", "name": "fc", "out_features": 4}]}
    job["data"] = {"train": {"format": "idx", "inputs": "x.gz", "targets": "y.gz"}}
    job["loss"] = {"type": "CrossEntropyLoss"}
    return job


def unknown_key(job, folder):
    job["model"]["layers"][0]["out_featurs"] = 2


def wrong_shape(job, folder):
    job["model"]["layers"][1]["in_features"] = 5


def missing_file(job, folder):
    job["data"]["train"]["inputs"] = "nowhere.gz"


def truncated(job, folder):
    path = os.path.join(folder, "x.gz")
    with open(path, "rb+") as file:
        file.truncate(os.path.getsize(path) - 6)


def label_out_of_range(job, folder):
    idx(os.path.join(folder, "y.gz"), [4], [0, 1, 2, 7])


def too_many_devices(job, folder):
    job["parallel"] = {"mode": "replicate", "devices": 3}


def diverges(job, folder):
    job["loss"] = {"type": "MSELoss"}
    job["optimizer"]["lr"] = 1e30
    job["train"] = {"max_steps": 50, "batch_size": 2}


def output_is_a_file(job, folder):
    with open(os.path.join(folder, "taken"), "w"):
        pass
    job["output"] = "taken"


# (what is wrong, the stable name, the parts of the message)
FAULTS = [
    (unknown_key, "job.invalid", ["/model/layers/0", "out_featurs", "Flatten"]),
    (wrong_shape, "model.shape", ["/model/layers/1", "fc", "5", "4"]),
    (missing_file, "io", ["nowhere.gz", "No such file or directory"]),
    (truncated, "data.invalid", ["x.gz", "cut off"]),
    (label_out_of_range, "data.invalid", ["y.gz", "7", "4"]),
    (too_many_devices, "device.unknown", ["asks for", "cpu:0 to cpu:1"]),
    (diverges, "loss.nan", ["loss", "step"]),
    (output_is_a_file, "output", ["taken"]),
]


@pytest.mark.parametrize("spoil, name, parts", FAULTS, ids=[f[0].__name__ for f in FAULTS])
def test_bad_input_through_the_daemon(box, spoil, name, parts):
    job = classifier(box.folder)
    spoil(job, box.folder)
    try:
        [record] = box.wait(box.submit(job))
        assert record["state"] == "failed"
        got = record["exit"]["code"], f"{record['exit']['path']} {record['exit']['message']}"
    except Error as error:  # refused at once: no job was made
        got = error.name, f"{error.path} {error}"
        assert box.rpc.call("job.list")["jobs"] == []
    assert got[0] == name, got
    for part in parts:
        assert part in got[1], got
    # The daemon lives, the devices are free, nothing half-done is left.
    assert box.rpc.call("server.info")["devices"] == {"total": 2, "free": 2}
    for run in glob.glob(os.path.join(box.folder, "runs", "*")):
        assert "weights.safetensors" not in os.listdir(run)
    assert box.wait(box.submit(linear(devices=2)))[0]["state"] == "completed"


@pytest.mark.parametrize("spoil, name, parts", FAULTS, ids=[f[0].__name__ for f in FAULTS])
def test_bad_input_by_hand(folder, spoil, name, parts):
    job = classifier(folder)
    spoil(job, folder)
    devices = "cpu:0,cpu:1,cpu:2" if spoil is too_many_devices else "cpu:0"
    output = "taken" if spoil is output_is_a_file else "out"
    status, _, errors = run_worker(job, folder, devices=devices, output=output)
    assert status == 1, errors
    for part in parts:
        assert part in errors, errors


def test_broken_json(box):
    path = os.path.join(box.folder, "job.json")
    with open(path, "w") as file:
        file.write('{"version": 1,\n  "model": [}')
    for command in ("submit", "check"):
        done = box.trainctl(command, path)
        assert done.returncode == 1
        assert "job.json:2:" in done.stderr, done.stderr
    assert box.rpc.call("job.list")["jobs"] == []


def test_exit_statuses(box, folder):
    assert box.trainctl("show", "77").returncode == 3
    assert box.trainctl("no-such-command").returncode == 2
    assert box.trainctl("cancel", "77").returncode == 3
    assert box.trainctl("--socket", os.path.join(folder, "nothing"), "list").returncode == 5


def death_by_segv():
    """AddressSanitizer takes the signal and exits."""
    with open(WORKER, "rb") as file:
        return ("the worker exited with status 1 without saying why" if b"__asan_init" in file.read()
                else "the worker was killed by signal 11 (SIGSEGV)")


def test_a_crash_fails_the_job(box):
    job, waiting = box.submit(endless(devices=2)), box.submit(linear(devices=2))
    box.until(job, "running", progress=True)
    os.kill(box.worker_pid(job), signal.SIGSEGV)
    crashed, after = box.wait(job, waiting)
    assert crashed["state"] == "failed"
    assert crashed["reason"] == death_by_segv()
    assert after["state"] == "completed"


def test_sigkill_fails_the_job(box):
    job = box.submit(endless())
    box.until(job, "running", progress=True)
    worker = box.worker_pid(job)
    os.kill(worker, signal.SIGKILL)
    [record] = box.wait(job)
    assert record["state"] == "failed"
    assert "signal 9 (SIGKILL)" in record["reason"]
    assert not living(worker)
    assert box.rpc.call("server.info")["devices"]["free"] == 2


def hanging_worker(folder):
    """The real worker, and then a process that does not end though it has closed its report pipe."""
    path = os.path.join(folder, "worker")
    with open(path, "w") as file:
        file.write(f'#!/bin/sh\n"{WORKER}" "$@" || exit\n[ "$1" = run ] || exit 0\nexec 3>&-\nsleep 1000\n')
    os.chmod(path, stat.S_IRWXU)
    return path


def test_a_worker_that_hangs_on_exit(box):
    box.kill()
    box.options = ["--worker", hanging_worker(box.folder), "--grace", "1"]
    box.start()
    job = box.submit(linear(devices=2))
    after = box.submit(linear(devices=2))
    record, following = box.wait(job, after)
    assert record["state"] == "failed"
    assert "did not exit" in record["reason"]
    assert following["started"] >= record["ended"]
    assert box.rpc.call("server.info")["devices"]["free"] == 2


def test_a_stopped_worker_can_be_cancelled(box):
    box.kill()
    box.options = ["--grace", "1"]
    box.start()
    job = box.submit(endless())
    box.until(job, "running", progress=True)
    worker = box.worker_pid(job)
    os.kill(worker, signal.SIGSTOP)
    box.rpc.call("job.cancel", ids=[job])
    [record] = box.wait(job)
    assert record["state"] == "cancelled"
    assert not living(worker)


def memory_cgroup():
    """A memory cgroup that this test may make, or None: (path, file of the limit)."""
    for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        path = os.path.join(root, f"traind-test-{os.getpid()}")
        try:
            os.mkdir(path)
        except OSError:
            continue
        if os.path.exists(os.path.join(path, limit)):
            return path, os.path.join(path, limit)
        os.rmdir(path)
    return None


def test_killed_for_memory(box):
    group = memory_cgroup()
    if group is None:
        pytest.skip("no memory cgroup can be made here")
    path, limit = group
    with open(limit, "w") as file:
        file.write(str(200 << 20))
    box.kill()
    box.start()
    with open(os.path.join(path, "cgroup.procs"), "w") as file:
        file.write(str(box.process.pid))
    try:
        job = linear(devices=1, batch=1000, samples=200000)
        job["model"]["layers"] = [{"type": "Linear", "out_features": 60000}, {"type": "Linear", "out_features": 2}]
        [record] = box.wait(box.submit(job))
        assert record["state"] == "failed", record
        assert "memory" in record["reason"], record
        assert box.rpc.call("server.info")["devices"]["free"] == 2
        assert box.wait(box.submit(linear()))[0]["state"] == "completed"
    finally:
        box.close()
        box.start()
        os.rmdir(path)


def test_lines_that_are_no_requests(box):
    for line, name in ((b"{\n", "rpc.parse"), (b"[]\n", "rpc.request"), (b'{"jsonrpc":"2.0","id":1,"method":"x"}\n', "rpc.method"),
                       (b'{"jsonrpc":"2.0","id":1,"method":"job.show","params":{"id":"1"}}\n', "rpc.params")):
        connection = box.connect()
        connection.socket.sendall(line)
        assert connection.read()["error"]["data"]["name"] == name
    assert box.rpc.call("server.info")["protocol"] == 1


def closed(command, *args, descriptors):
    """Runs a program with these standard descriptors closed."""
    script = 'exec "$0" "$@" ' + " ".join(f"{fd}>&-" for fd in descriptors)
    return subprocess.run(["/bin/sh", "-c", script, command, *args], capture_output=True, text=True, timeout=LIMIT)


def test_closed_standard_descriptors(box):
    """The connection must not become standard output, nor the database."""
    job = box.submit(linear())
    box.wait(job)
    for args in (["list"], ["show", str(job)], ["submit", "-w", os.path.join(box.folder, "none.json")]):
        done = closed(TRAINCTL, "--socket", box.path, *args, descriptors=[1])
        assert done.returncode == 1
        assert "must be an object" not in done.stderr, done.stderr
    assert "Bad file descriptor" in closed(TRAINCTL, "--socket", box.path, "list", descriptors=[1]).stderr
    done = closed(TRAINCTL, "--socket", box.path, "cancel", str(job), descriptors=[0, 1, 2])
    assert done.returncode == 1


def listening(path, daemon):
    """A connection, once the daemon listens."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            return Connection(path)
        except OSError:
            assert daemon.poll() is None and time.monotonic() < end
            time.sleep(0.01)


def test_a_daemon_without_standard_descriptors(folder):
    script = 'exec "$0" --user --cpu-devices 2 --socket "$1/s" --state "$1/state" <&- >&- 2>&-'
    daemon = subprocess.Popen(["/bin/sh", "-c", script, TRAIND, folder])
    try:
        path = os.path.join(folder, "s")
        rpc = listening(path, daemon)
        job = rpc.call("job.submit", job=linear(), cwd=folder)["id"]
        assert rpc.call("job.wait", ids=[job], timeout=LIMIT)["jobs"][0]["state"] == "completed"
        rpc.close()
    finally:
        daemon.terminate()
        assert daemon.wait(LIMIT) == 0


def test_a_full_disk_of_the_daemon(box):
    """Nobody waits for room: a cancellation says that it will be done, and is, once there is."""
    job = box.submit(endless())
    box.until(job, "running", progress=True)
    _, most = resource.prlimit(box.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(box.process.pid, resource.RLIMIT_FSIZE, (1, most))
    for method, params in (("job.submit", {"job": linear(), "cwd": box.folder}), ("job.cancel", {"ids": [job]})):
        with pytest.raises(Error) as refused:
            box.rpc.call(method, **params)
        assert refused.value.name == "io", refused.value
    assert "as soon as that can be written" in str(refused.value)
    assert [j["id"] for j in box.rpc.call("job.list")["jobs"]] == [job]
    assert living(box.worker_pid(job))
    resource.prlimit(box.process.pid, resource.RLIMIT_FSIZE, (most, most))
    [record] = box.wait(job)
    assert record["state"] == "cancelled"
    assert box.wait(box.submit(linear()))[0]["state"] == "completed"
