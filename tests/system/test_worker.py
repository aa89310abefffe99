"""traind-worker by hand: probe, plan, reports, exit statuses."""

import json
import os
import resource
import signal
import subprocess

import pytest

from traind import LIMIT, WORKER, endless, linear


def worker(*args, **kwargs):
    return subprocess.run([WORKER, *args], capture_output=True, text=True, timeout=LIMIT, **kwargs)


def write(folder, job):
    path = os.path.join(folder, "job.json")
    with open(path, "w") as file:
        json.dump(job, file)
    return path


def test_probe_offers_as_many_devices_as_asked():
    done = worker("probe", "--cpu-devices", "5", "--json")
    devices = json.loads(done.stdout)["devices"]
    assert [d["name"] for d in devices] == [f"cpu:{i}" for i in range(5)]
    for device in devices:
        assert set(device["cores"]) <= os.sched_getaffinity(0) and device["cores"]
        assert device["memory_bytes"] > 0


def test_plan_says_what_each_device_needs(folder):
    done = worker("plan", write(folder, linear(devices=3, batch=10)), "--cpu-devices", "3", "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["parameters"] == 12
    assert (plan["steps_per_epoch"], plan["steps"]) == (10, 10)
    assert plan["layers"] == [{"name": "fc", "type": "Linear", "output_shape": [2], "parameters": 12, "flops": 20,
                               "activation_bytes": 8, "devices": ["cpu:0", "cpu:1", "cpu:2"]}]
    assert [d["samples"] for d in plan["devices"]] == [4, 4, 2]
    for device in plan["devices"]:
        assert device["peak_bytes"] == sum(device[k + "_bytes"] for k in ("state", "arena", "input", "padding"))


def test_plan_shows_each_layer_with_its_own_shape(folder):
    job = linear()
    job["model"]["layers"] = [
        {"type": "Linear", "name": "a", "out_features": 4},
        {"type": "Linear", "name": "a.b", "out_features": 6, "bias": False},
        {"type": "Dropout", "name": "wide"},
        {"type": "Dropout", "name": "narrow", "inputs": ["a"]},
        {"type": "Flatten", "name": "same", "inputs": ["a.b"]},
        {"type": "ReLU", "name": "unread", "inputs": ["a.b"]},
        {"type": "Linear", "name": "fc", "inputs": ["narrow"], "out_features": 2}]
    done = worker("plan", write(folder, job), "--json")
    assert done.returncode == 0, done.stderr
    layers = {row["name"]: (row["output_shape"], row["parameters"]) for row in json.loads(done.stdout)["layers"]}
    assert layers == {"a": ([4], 24), "a.b": ([6], 24), "wide": ([6], 0), "narrow": ([4], 0), "same": ([6], 0),
                      "unread": ([6], 0), "fc": ([2], 10)}


@pytest.mark.parametrize("args", [["probe"], ["probe", "--json"], ["plan", "-"], ["plan", "-", "--json"],
                                  ["--help"], ["--version"]])
def test_a_result_that_cannot_be_printed_is_a_failure(args):
    with open("/dev/full", "w") as full:
        done = subprocess.run([WORKER, *args], input=json.dumps(linear()), stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=LIMIT)
    assert done.returncode == 1
    assert "cannot write to standard output: No space left on device" in done.stderr


def test_a_device_of_fewer_cores_is_warned_of(folder):
    cores = sorted(os.sched_getaffinity(0))[:3]
    if len(cores) < 3:
        pytest.skip("two devices of unequal cores need three cores")
    done = worker("run", write(folder, linear(devices=2)), "--cpu-devices", "2", cwd=folder,
                  preexec_fn=lambda: os.sched_setaffinity(0, cores))
    assert done.returncode == 0, done.stderr
    assert "cpu:0 has under 75 % of the cores of cpu:1" in done.stdout + done.stderr


def staged(devices, **parallel):
    job = linear()
    job["model"]["layers"] = [{"type": "Linear", "name": "a", "out_features": 8}, {"type": "Tanh", "name": "t"},
                              {"type": "Linear", "name": "b", "out_features": 2}]
    job["parallel"] = {"mode": "stages", "devices": devices, **parallel}
    return job


def test_plan_shows_stages(folder):
    job = write(folder, staged(4, replicas=2, split=["b"], split_size=4))
    done = worker("plan", job, "--cpu-devices", "4", "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert [row["devices"] for row in plan["layers"]] == [["cpu:0", "cpu:2"]] * 2 + [["cpu:1", "cpu:3"]]
    assert [d["samples"] for d in plan["devices"]] == [4] * 4
    for device in plan["devices"]:
        assert device["held_bytes"] > 0
        assert device["peak_bytes"] == sum(device[k + "_bytes"] for k in ("state", "arena", "input", "held", "padding"))


def test_the_document_comes_from_standard_input_too(folder):
    done = worker("run", "-", "--output", "out", "--json", input=json.dumps(linear()), cwd=folder)
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["type"] for r in (reports[0], reports[-1])] == ["started", "done"]
    assert os.path.exists(reports[-1]["weights"])


def test_reports_go_to_the_descriptor_and_text_to_the_log(folder):
    path = write(folder, linear())
    read, write_end = os.pipe()
    done = worker("run", path, cwd=folder, pass_fds=[write_end],
                  env={**os.environ, "TRAIND_REPORT_FD": str(write_end)})
    os.close(write_end)
    with os.fdopen(read) as stream:
        reports = [json.loads(line) for line in stream]
    assert reports[-1]["type"] == "done" and reports[-1]["step"] == 4
    assert done.stdout.splitlines()[-1].startswith("done: step 4")


def test_a_failure_is_told_in_both_languages(folder):
    job = linear()
    job["model"]["layers"][0]["in_features"] = 6
    done = worker("run", write(folder, job), "--json", cwd=folder)
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert (report["type"], report["code"]) == ("failed", "model.shape")
    assert done.stderr.endswith(f"job.json: {report['path']}: {report['message']}\n")


@pytest.mark.parametrize("args", [[], ["train"], ["run"], ["run", "a", "b"], ["probe", "--output", "x"],
                                  ["probe", "--cpu-devices", "0"], ["run", "a", "--bogus"], ["run", "a", "--devices"]])
def test_a_wrong_command_line_is_status_2(args):
    done = worker(*args)
    assert done.returncode == 2
    assert done.stderr.startswith("traind-worker: ") and "usage:" in done.stderr


def test_sigterm_leaves_a_checkpoint(folder):
    process = subprocess.Popen([WORKER, "run", write(folder, endless()), "--output", "out", "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
    for line in process.stdout:
        if json.loads(line)["type"] == "progress":
            break
    process.send_signal(signal.SIGTERM)
    reports = [json.loads(line) for line in process.communicate(timeout=LIMIT)[0].splitlines()]
    assert process.returncode == 1
    assert (reports[-1]["type"], reports[-1]["code"]) == ("failed", "cancelled")
    checkpoints = [r["path"] for r in reports if r["type"] == "checkpoint"]
    assert os.path.isdir(checkpoints[-1])


def test_without_standard_descriptors_no_file_takes_their_place(folder):
    """What is printed would end up in the file that has got the number of standard output."""
    write(folder, linear(epochs=3))
    script = 'exec "$0" run job.json --output "$1" "$2" <&- >&- 2>&-'
    for output, option in (("text", "--devices=cpu:0"), ("json", "--json")):
        done = subprocess.run(["/bin/sh", "-c", script, WORKER, output, option], timeout=LIMIT, cwd=folder)
        assert done.returncode == 0
        for name in ("metrics.jsonl", "job.json"):
            with open(os.path.join(folder, output, name)) as file:
                text = file.read()
            for line in text.splitlines() if name == "metrics.jsonl" else [text]:
                json.loads(line)


@pytest.mark.parametrize("name", ["metrics.jsonl", "job.json", ".job.json.new", "lock", "weights.safetensors",
                                  "checkpoints"])
@pytest.mark.parametrize("lay", [os.mkfifo, lambda path: os.symlink("/dev/full", path)], ids=["fifo", "device"])
def test_what_lies_in_the_output_directory_is_not_waited_for(folder, name, lay):
    os.mkdir(os.path.join(folder, "out"))
    lay(os.path.join(folder, "out", name))
    done = worker("run", write(folder, linear()), "--output", "out", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "") or "/out" in done.stderr, done.stderr


def test_why_the_output_directory_cannot_be_made(folder):
    """Not that it is missing, but what the system said."""
    done = worker("run", write(folder, linear()), "--output", "/sys/traind-test", cwd=folder)
    assert done.returncode == 1
    assert "cannot make the output directory /sys/traind-test: " in done.stderr
    assert "No such file" not in done.stderr


def test_a_file_that_may_not_grow_is_a_failure_with_a_reason(folder):
    job = linear()
    job["model"]["layers"] = [{"type": "Linear", "out_features": 4096}, {"type": "Linear", "out_features": 2}]
    done = worker("run", write(folder, job), "--output", "out", cwd=folder,
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)))
    assert done.returncode == 1
    assert "weights.safetensors: File too large" in done.stderr, done.stderr
