"""Jobs whose priority or time limit is changed while they wait or run."""

import pytest
from traind import Error, endless, linear


def test_a_priority_moves_a_job_ahead(box):
    running = box.submit(endless(devices=2))
    box.until(running, "running", progress=True)
    first, second = box.submit(linear(devices=2)), box.submit(linear(devices=2))
    assert box.show(second)["reason"] == f"behind job {first}"
    done = box.trainctl("update", str(first), "--priority", "-5", "--reason", "no hurry")
    assert done.returncode == 0 and done.stdout == f"job {first}: queued\n"
    assert box.show(first)["reason"] == f"behind job {second} (priority)"
    assert box.show(first)["history"][-1]["reason"] == "updated by uid 0: no hurry"
    box.rpc.call("job.cancel", ids=[running])
    records = box.wait(first, second)
    assert records[1]["ended"] <= records[0]["started"]


def test_a_time_limit_ends_what_runs(box):
    job = box.submit(endless())
    box.until(job, "running", progress=True)
    box.rpc.call("job.update", ids=[job], time_limit="1s")
    [record] = box.wait(job)
    assert record["state"] == "timed_out" and record["reason"] == "its time limit of 1s is reached"


def test_a_restart_keeps_it(box):
    box.until(box.submit(endless(devices=2)), "running")
    job = box.submit(linear())
    box.rpc.call("job.update", ids=[job], priority=-7, time_limit="2h")
    box.kill()
    box.start()
    record = box.show(job)
    assert record["state"] == "queued"
    box.rpc.call("job.update", ids=[job], time_limit="none")


def test_what_cannot_be(box):
    ended = box.submit(linear())
    box.wait(ended)
    for params, name, words in [
            ({}, "rpc.params", "priority or time_limit must be given"),
            ({"priority": 101}, "rpc.params", "from -100 to 100"),
            ({"time_limit": "soon"}, "rpc.params", "a length of time"),
            ({"priority": 1}, "job.state", "has ended")]:
        with pytest.raises(Error) as error:
            box.rpc.call("job.update", ids=[ended], **params)
        assert error.value.name == name and words in str(error.value)
