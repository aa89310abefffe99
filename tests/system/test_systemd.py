"""systemd's own checks of what is installed for it."""

import os
import shutil
import subprocess

import pytest

from traind import BUILD, LIMIT, SOURCE

pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def test_the_unit_is_clean(folder):
    with open(os.path.join(SOURCE, "systemd", "traind.service.in")) as file:
        unit = file.read()
    path = os.path.join(folder, "traind.service")
    with open(path, "w") as file:  # verify wants programs and documents that are there
        file.write(unit.replace("@sbindir@", os.path.join(BUILD, "daemon")).replace("@docdir@", os.path.join(SOURCE, "doc")))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, timeout=LIMIT)
    assert (done.returncode, done.stderr) == (0, "")  # an unknown key is only said, with status 0


def test_the_groups_are_the_daemons(folder):
    done = subprocess.run(["systemd-sysusers", "--dry-run", os.path.join(SOURCE, "systemd", "traind.sysusers")],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    usage = subprocess.run([os.path.join(BUILD, "daemon", "traind"), "--help"], capture_output=True, text=True, timeout=LIMIT).stdout
    for group in ("traind", "traind-admin"):
        assert f"default: {group})" in usage
