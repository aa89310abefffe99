"""What a user does: submit, watch, wait, read logs, cancel."""

import json
import os

import pytest
from traind import SOURCE, endless, linear


def test_two_side_by_side_and_the_third_waits(box):
    first, second, third = (box.submit(endless()) for _ in range(3))
    records = [box.until(job, "running", progress=True) for job in (first, second)]
    assert sorted(d for r in records for d in r["devices"]) == ["cpu:0", "cpu:1"]
    waiting = box.show(third)
    assert waiting["state"] == "queued"
    assert waiting["reason"] == "waiting for 1 of 1 device"
    owners = {d["name"]: d["job"] for d in box.rpc.call("device.list")["devices"]}
    assert sorted(owners.values()) == [first, second]
    box.rpc.call("job.cancel", ids=[first])
    [ended] = box.wait(first)
    assert ended["state"] == "cancelled"
    started = box.until(third, "running", progress=True)
    assert started["devices"] == ended["devices"]


def test_three_queue_in_order(box):
    jobs = [box.submit(linear(epochs=3, devices=2)) for _ in range(3)]
    records = box.wait(*jobs)
    assert [r["state"] for r in records] == ["completed"] * 3
    times = [(r["started"], r["ended"]) for r in records]
    assert all(before[1] <= after[0] for before, after in zip(times, times[1:]))


def test_behind_names_the_job_ahead(box):
    box.until(box.submit(endless()), "running")
    head = box.submit(linear(devices=2))
    behind = box.submit(linear())
    assert box.show(head)["reason"] == "waiting for 1 of 2 devices"
    assert box.show(behind)["reason"] == f"behind job {head}"


def test_cancel_while_queued(box):
    running = box.submit(endless(devices=2))
    box.until(running, "running")
    queued = box.submit(linear())
    box.rpc.call("job.cancel", ids=[queued])
    [record] = box.wait(queued)
    assert record["state"] == "cancelled"
    assert record["started"] is None
    assert box.show(running)["state"] == "running"


def test_cancel_while_running_leaves_a_checkpoint(box):
    job = box.submit(endless())
    box.until(job, "running", progress=True)
    assert box.trainctl("cancel", str(job)).returncode == 0
    [record] = box.wait(job)
    assert record["state"] == "cancelled"
    checkpoints = os.listdir(os.path.join(box.folder, "runs", str(job), "checkpoints"))
    assert len(checkpoints) == 1 and checkpoints[0].startswith("step-")


@pytest.mark.parametrize("example", ["digits-cnn", "digits-stages"])
def test_digits_reach_their_accuracy(box, example):
    done = box.trainctl("submit", "--watch", f"examples/{example}.json", cwd=SOURCE_COPY(box))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "accuracy" in done.stdout
    record = box.rpc.call("job.list")["jobs"][-1]
    record = box.show(record["id"])
    assert record["state"] == "completed"
    assert record["progress"]["accuracy"] >= 0.97
    assert len(record["devices"]) == 2
    assert os.path.getsize(record["weights"]) > 0


def SOURCE_COPY(box):
    """A folder with examples/ in which a job may write."""
    os.symlink(os.path.join(SOURCE, "examples"), os.path.join(box.folder, "examples"))
    return box.folder


def test_the_same_key_gives_the_same_job(box):
    first = box.rpc.call("job.submit", job=linear(), cwd=box.folder, key="once")["id"]
    assert box.rpc.call("job.submit", job=linear(), cwd=box.folder, key="once")["id"] == first
    assert len(box.rpc.call("job.list")["jobs"]) == 1


def test_json_everywhere(box):
    path = os.path.join(box.folder, "job.json")
    with open(path, "w") as file:
        json.dump(linear(), file)
    submitted = json.loads(box.trainctl("submit", "--json", path).stdout)
    job = str(submitted["id"])
    assert box.trainctl("wait", job).returncode == 0
    for args in (["list"], ["show", job], ["devices"], ["info"], ["wait", job], ["logs", job],
                 ["check", path], ["plan", path]):
        done = box.trainctl(args[0], "--json", *args[1:])
        assert done.returncode == 0, (args, done.stderr)
        for line in done.stdout.splitlines():
            json.loads(line)
        assert done.stdout.strip(), args
