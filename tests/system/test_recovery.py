"""The daemon dies; jobs do not."""

import os

from traind import endless, linear, living


def test_a_running_job_is_adopted(box):
    job = box.submit(endless())
    before = box.until(job, "running", progress=True)
    worker = box.worker_pid(job)
    box.kill()
    assert living(worker)
    box.start()
    after = box.until(job, "running")
    assert box.worker_pid(job) == worker
    assert after["devices"] == before["devices"]
    assert [d["job"] for d in box.rpc.call("device.list")["devices"] if d["job"] is not None] == [job]
    box.rpc.call("job.cancel", ids=[job])
    assert box.wait(job)[0]["state"] == "cancelled"


def test_an_end_while_the_daemon_is_dead_is_recorded(box):
    slow = linear(epochs=400, batch=1)
    job = box.submit(slow)
    box.until(job, "running", progress=True)
    box.kill()
    exit_record = os.path.join(box.state, "jobs", str(job), "exit.json")
    from traind import wait_gone
    wait_gone(box.shim_pid(job))
    assert os.path.exists(exit_record)
    box.start()
    [record] = box.wait(job)
    assert record["state"] == "completed"
    assert record["progress"]["step"] == 400 * 100
    assert box.wait(box.submit(linear(devices=2)))[0]["state"] == "completed"


def test_queued_jobs_survive(box):
    running = box.submit(endless(devices=2))
    box.until(running, "running")
    queued = [box.submit(linear()) for _ in range(3)]
    box.kill()
    box.start()
    assert [box.show(job)["state"] for job in queued] == ["queued"] * 3
    box.rpc.call("job.cancel", ids=[running])
    assert [r["state"] for r in box.wait(*queued)] == ["completed"] * 3
