"""trainctl tune: a job on the queue that measures, then a table, three pictures and a copy of the document."""

import json
import os

import pytest
from traind import Error, endless, linear

SCHEDULE = {"mode": "stages", "devices": 2, "schedule": "1f1b", "microbatches": 2}


def staged(**parallel):
    job = linear(batch=8)
    job["output"] = "runs/mine"
    job["model"]["layers"] = [{"type": "Linear", "name": "a", "out_features": 8},
                              {"type": "ReLU", "name": "b"},
                              {"type": "Linear", "name": "c", "out_features": 3}]
    job["parallel"] = {**SCHEDULE, **parallel}
    return job


def write(box, job):
    path = os.path.join(box.folder, "job.json")
    with open(path, "w") as file:
        json.dump(job, file)
    return path


def read(*path):
    with open(os.path.join(*path)) as file:
        return json.load(file)


def test_measures_on_the_queue_and_draws(box):
    done = box.trainctl("tune", write(box, staged()))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    head = lines.index(["WAY", "SPLIT", "SIZE", "SECONDS", "A", "STEP", "DEVIATION", "WAITING", "SPEED"])
    table = lines[head + 1:-2]  # then a blank line, and where the files are
    assert [row[:2] for row in table] == [["single", "-"], ["model_parallel", "-"], ["pipelined", "1"],
                                          ["pipelined", "3"], ["pipelined", "5"]]
    [record] = box.rpc.call("job.list")["jobs"]
    assert (record["state"], record["n_devices"]) == ("completed", 2)
    assert (record["progress"]["step"], record["progress"]["steps"]) == (155, 155)
    folder = os.path.join(box.folder, "runs", str(record["id"]))
    assert record["weights"] == os.path.join(folder, "tune.json")
    assert not os.path.exists(os.path.join(box.folder, "runs", "mine"))
    assert lines[-1][-1] == os.path.join(folder, "tuned.json")
    tuning = read(folder, "tune.json")
    for way, row in zip(tuning["ways"], table):
        assert float(row[2]) == pytest.approx(way["mean"], rel=1e-3)
        assert 0 <= way["waiting"] < 1 and way["deviation"] >= 0
    assert tuning["ways"][0]["waiting"] == 0
    best = min((way for way in tuning["ways"] if way["way"] == "pipelined"), key=lambda way: way["mean"])
    assert tuning["best_split_size"] == best["split_size"]
    tuned = read(folder, "tuned.json")
    assert tuned["parallel"] == {"mode": "stages", "devices": 2, "schedule": "1f1b",
                                 "split_size": best["split_size"], "split": tuning["split"]}
    assert tuned["output"] == "runs/mine" and "mode" not in tuned["train"]
    for name in ("model-parallel", "pipelined", "split-size"):
        with open(os.path.join(folder, name + ".png"), "rb") as file:
            assert file.read(8) == b"\x89PNG\r\n\x1a\n"
        with open(os.path.join(folder, name + ".svg")) as file:
            assert ">time a step (s), mean ± standard deviation</text>" in file.read()
    assert box.trainctl("check", os.path.join(folder, "tuned.json")).returncode == 0


def test_shows_again_what_a_job_measured(box):
    job = staged()
    job["train"]["mode"] = "tune"
    number = box.submit(job)
    assert box.trainctl("tune", str(number)).returncode == 2  # it has not ended
    box.wait(number)
    elsewhere = os.path.join(box.folder, "pictures")
    done = box.trainctl("tune", str(number), "--json", "-o", elsewhere)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == read(box.folder, "runs", "mine", "tune.json")
    assert sorted(os.listdir(elsewhere)) == ["model-parallel.png", "model-parallel.svg", "pipelined.png",
                                             "pipelined.svg", "split-size.png", "split-size.svg", "tuned.json"]


def test_waits_for_its_devices_and_can_be_cancelled(box):
    running = box.submit(endless(devices=2))
    box.until(running, "running")
    job = staged()
    job["train"]["mode"] = "tune"
    job["model"]["layers"][0]["out_features"] = 20000
    queued = box.submit(job)
    assert box.show(queued)["state"] == "queued"
    box.rpc.call("job.cancel", ids=[running])
    box.until(queued, "running", progress=True)
    box.rpc.call("job.cancel", ids=[queued])
    [record] = box.wait(queued)
    assert record["state"] == "cancelled"


def test_refuses_what_cannot_be_tuned(box):
    for parallel, path in (({"mode": "single"}, "/parallel/mode"),):
        job = staged()
        job["parallel"] = parallel
        job["train"]["mode"] = "tune"
        with pytest.raises(Error) as refused:
            box.submit(job)
        assert refused.value.path == path
        done = box.trainctl("tune", write(box, {**job, "train": {**job["train"], "mode": "train"}}))
        assert done.returncode == 1
        assert "only a job of mode \"stages\" has something to tune" in done.stderr
    job = staged()
    job["train"].update(mode="tune", accumulate=2)
    with pytest.raises(Error) as refused:
        box.submit(job)
    assert (refused.value.name, refused.value.path) == ("job.unsupported", "/train/accumulate")
