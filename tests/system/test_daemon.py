"""The daemon as a process: its command line, its signals, its log."""

import os
import re
import signal
import subprocess

import pytest

from traind import LIMIT, TRAIND, linear


def run(*args, **kwargs):
    return subprocess.run([TRAIND, *args], capture_output=True, text=True, timeout=LIMIT, **kwargs)


def test_what_only_prints(folder):
    for option, first in (("--help", "usage: traind "), ("--version", "traind ")):
        done = run(option)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(first)
    done = run("--user", "--check-config", "--state", folder + "/state", "--socket", "s", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(f"^socket +{folder}/s$", done.stdout, re.MULTILINE)
    assert os.listdir(folder) == []


@pytest.mark.parametrize("args, message", [
    (["--user", "now"], 'unexpected argument "now"'),
    (["--user", "--grace", "0"], '--grace: "0" is not a number from 1 to 3600'),
    (["--user", "--shim", "/no/shim"], "--shim: /no/shim: No such file or directory"),
])
def test_a_wrong_line_is_usage(args, message):
    done = run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("traind: " + message)


def test_what_cannot_be_served_is_a_failure(folder):
    os.mkdir(folder + "/s")
    done = run("--user", "--state", folder + "/state", "--socket", folder + "/s")
    assert done.returncode == 1
    assert f"{folder}/s: is there, and is not a socket" in done.stderr


@pytest.mark.parametrize("box", [{"before": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}], indirect=True)
def test_nohup_is_heeded(box):
    box.rpc.call("server.info")  # it has set up its signals
    box.process.send_signal(signal.SIGHUP)
    assert box.wait(box.submit(linear()))[0]["state"] == "completed"


@pytest.mark.parametrize("box", [{"environment": {"JOURNAL_STREAM": "1:2"}}], indirect=True)
def test_a_log_that_is_not_the_journal_has_times(box):
    box.rpc.call("server.info")  # it has said that it is ready
    assert re.match(r"\d{4}-\d\d-\d\d ", box.log())
