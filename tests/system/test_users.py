"""The system daemon: every job runs as its submitter, and a job is its owner's alone. Needs root."""

import json
import os
import pwd
import shutil
import subprocess

import pytest

from traind import BUILD, LIMIT, Box, endless, linear

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs as other users")

ALICE, BOB = "nobody", "daemon"  # users of every Debian system
GROUP = "nogroup"


class SystemBox(Box):
    """traind as root, its programs copied to where every user may run them."""

    def __init__(self, folder):
        super().__init__(folder, options=["--group", GROUP])
        os.chmod(folder, 0o755)
        for program in ("daemon/traind", "daemon/traind-shim", "engine/worker/traind-worker", "client/trainctl"):
            target = os.path.join(folder, "bin", program)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(os.path.join(BUILD, program), target)
        self.program = os.path.join(folder, "bin/daemon/traind")
        self.mode = []

    def home(self, user):
        path = os.path.join(self.folder, user)
        os.makedirs(path, exist_ok=True)
        os.chown(path, pwd.getpwnam(user).pw_uid, -1)
        os.chmod(path, 0o700)
        return path

    def as_user(self, user, *args, groups=()):
        return subprocess.run([os.path.join(self.folder, "bin/client/trainctl"), "--socket", self.path, *args],
                              user=user, group=GROUP, extra_groups=list(groups), cwd=self.home(user),
                              capture_output=True, text=True, timeout=LIMIT)

    def submit_as(self, user, job):
        path = os.path.join(self.home(user), "job.json")
        with open(path, "w") as file:
            json.dump(job, file)
        done = self.as_user(user, "submit", "job.json")
        assert done.returncode == 0, done.stderr
        return int(done.stdout)


@pytest.fixture
def system(folder):
    made = SystemBox(folder)
    made.start()
    yield made
    made.close()


def test_a_job_runs_as_its_submitter(system):
    job = system.submit_as(ALICE, endless())
    system.until(job, "running", progress=True)
    uid = pwd.getpwnam(ALICE).pw_uid
    with open(f"/proc/{system.worker_pid(job)}/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    assert status["Uid"].split() == [str(uid)] * 4
    assert status["NoNewPrivs"] == "1"
    gid = pwd.getpwnam(ALICE).pw_gid
    assert status["Gid"].split() == [str(gid)] * 4
    system.rpc.call("job.cancel", ids=[job])
    system.wait(job)
    made = os.path.join(system.home(ALICE), "runs", str(job))
    assert {os.stat(os.path.join(folder, name)).st_uid
            for folder, _, names in os.walk(made) for name in names} == {uid}


def test_a_job_is_its_owners(system):
    job = system.submit_as(ALICE, endless())
    system.until(job, "running", progress=True)
    for command in ("cancel", "logs"):
        assert system.as_user(BOB, command, str(job)).returncode == 4
    shown = json.loads(system.as_user(BOB, "show", "--json", str(job)).stdout)
    assert shown["user"] == pwd.getpwnam(ALICE).pw_uid and shown["state"] == "running"
    assert not {"name", "cwd", "output", "document", "losses"} & set(shown)
    assert system.show(job)["state"] == "running"
    assert system.as_user(ALICE, "cancel", str(job)).returncode == 0
    assert system.wait(job)[0]["state"] == "cancelled"


def test_a_user_cannot_write_where_he_may_not(system):
    job = linear()
    job["output"] = os.path.join(system.home(BOB), "mine")
    [record] = system.wait(system.submit_as(ALICE, job))
    assert record["state"] == "failed"
    assert record["exit"]["code"] == "output"
    assert "Permission denied" in record["exit"]["message"]
    assert os.listdir(system.home(BOB)) == []


def test_administrators_are_a_group_of_their_own(system):
    system.kill()
    system.options += ["--admin-group", "adm"]
    system.start()
    job = system.submit_as(ALICE, endless())
    system.until(job, "running", progress=True)
    assert system.as_user(BOB, "cancel", str(job)).returncode == 4
    assert system.as_user(BOB, "cancel", str(job), groups=["adm"]).returncode == 0
    assert system.wait(job)[0]["state"] == "cancelled"


def test_a_user_lowers_his_priority_and_no_more(system):
    system.rpc.call("device.drain")
    job = system.submit_as(ALICE, linear())
    assert system.as_user(ALICE, "update", str(job), "--priority", "-3").returncode == 0
    done = system.as_user(ALICE, "update", str(job), "--priority", "-2")
    assert done.returncode == 4 and "only administrators raise it" in done.stderr
    assert system.as_user(BOB, "update", str(job), "--priority", "-9").returncode == 4
    system.rpc.call("job.update", ids=[job], priority=5)
    system.rpc.call("device.resume")
    [record] = system.wait(job)
    assert record["state"] == "completed"


def test_only_administrators_drain(system):
    done = system.as_user(ALICE, "drain", "cpu:0")
    assert done.returncode == 4 and "only administrators" in done.stderr
    assert system.as_user(ALICE, "resume", "all").returncode == 4
    assert {device["state"] for device in system.rpc.call("device.list")["devices"]} == {"free"}


def test_jobs_of_root_are_off(system):
    from traind import Error
    with pytest.raises(Error) as refused:
        system.submit(linear())
    assert refused.value.name == "denied"
