"""traind --detach: the command returns when the daemon serves, or with the daemon's failure."""

import os
import select
import signal
import subprocess

from traind import LIMIT, TRAIND, Connection, linear


def detached(folder, *options):
    return subprocess.run([TRAIND, "--user", "--detach", "--socket", os.path.join(folder, "s"),
                           "--state", os.path.join(folder, "state"), "--cpu-devices", "1", *options],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, cwd=folder)


def end(pid):
    process = os.pidfd_open(pid)
    signal.pidfd_send_signal(process, signal.SIGTERM)
    assert select.select([process], [], [], LIMIT)[0], "traind did not end"
    os.close(process)


def test_it_serves_when_the_command_returns(folder):
    done = detached(folder)
    assert done.returncode == 0, done.stderr
    rpc = Connection(os.path.join(folder, "s"))
    pid = rpc.call("server.info")["pid"]
    try:
        assert f"traind is process {pid};" in done.stdout
        assert os.getsid(pid) == pid
        job = rpc.call("job.submit", job=linear(), cwd=folder)["id"]
        assert not rpc.call("job.wait", ids=[job], timeout=LIMIT)["timed_out"]
        with open(os.path.join(folder, "state", "traind.log")) as log:
            assert f"job {job}: completed" in log.read()
        assert "ready: 1 device" in done.stderr and "job 1" not in done.stderr
        second = detached(folder)
        assert second.returncode == 1 and "another traind is using it" in second.stderr
    finally:
        rpc.close()
        end(pid)


def test_what_keeps_it_from_serving_is_the_commands_failure(folder):
    done = detached(folder, "--worker", "/bin/false")
    assert done.returncode == 1
    assert "the devices cannot be listed" in done.stderr
    assert done.stdout == ""
