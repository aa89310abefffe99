"""Devices that an administrator takes out of use and gives back."""

import pytest
from traind import Error, endless, linear


def states(box):
    return {device["name"]: device["state"] for device in box.rpc.call("device.list")["devices"]}


def test_what_runs_goes_on_and_nothing_starts(box):
    running = box.submit(endless())
    [device] = box.until(running, "running", progress=True)["devices"]
    done = box.trainctl("drain", device, "--reason", "a new fan")
    assert done.returncode == 0 and "draining" in done.stdout and "a new fan" in done.stdout
    other = ({"cpu:0", "cpu:1"} - {device}).pop()
    assert states(box) == {device: "draining", other: "free"}
    named = linear()
    named["parallel"] = {"mode": "single", "devices": [device]}
    waiting = box.submit(named)
    elsewhere = box.submit(linear())
    [record] = box.wait(elsewhere)
    assert record["state"] == "completed" and record["devices"] == [other]
    assert box.show(waiting)["reason"] == "1 of 1 device drained"
    assert box.show(running)["state"] == "running"
    box.rpc.call("job.cancel", ids=[running])
    box.wait(running)
    assert states(box)[device] == "drained"
    assert box.rpc.call("server.info")["devices"] == {"total": 2, "free": 1}
    assert box.trainctl("resume", device).returncode == 0
    [record] = box.wait(waiting)
    assert record["state"] == "completed" and record["devices"] == [device]


def test_a_restart_keeps_them(box):
    box.rpc.call("device.drain", devices=["cpu:1"], reason="broken")
    box.kill()
    box.start()
    assert states(box) == {"cpu:0": "free", "cpu:1": "drained"}
    assert box.show(box.submit(linear(devices=2)))["reason"] == "1 of 2 devices drained"


def test_all_at_once(box):
    assert box.trainctl("drain", "all").returncode == 0
    assert set(states(box).values()) == {"drained"}
    job = box.submit(linear())
    assert box.show(job)["reason"] == "1 of 1 device drained"
    box.rpc.call("device.resume", devices=["cpu"])
    box.wait(job)
    assert set(states(box).values()) == {"free"}


def test_all_or_none(box):
    with pytest.raises(Error) as error:
        box.rpc.call("device.drain", devices=["cpu:0", "cpu:7"])
    assert error.value.name == "device.unknown" and "cpu:7" in str(error.value)
    assert set(states(box).values()) == {"free"}
    with pytest.raises(Error) as error:
        box.rpc.call("device.drain", devices=["cpu:0"], reason="x" * 201)
    assert error.value.name == "rpc.params"
