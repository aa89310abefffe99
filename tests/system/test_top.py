"""trainctl top in a real terminal: tmux draws it, presses its keys, changes its size."""

import os
import re
import shlex
import subprocess
import time

import pytest
from traind import LIMIT, TRAINCTL, endless, linear


# The bottom line is drawn last: with it the screen is whole.
WHOLE = r"(?s:.*)\n[^\n]*c cancel  h hold[^\n]*$"


class Terminal:
    """A tmux server of its own with one window that runs a command."""

    def __init__(self, folder, command, size, environment):
        self.tmux = ["tmux", "-S", os.path.join(folder, "tmux"), "-f", "/dev/null"]
        self.env = {**os.environ, "TERM": "xterm-256color", **environment}
        words = " ".join(shlex.quote(word) for word in command)
        # the shell behind it shows what is left of the screen, and how it ended
        self.run("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]),
                 f"echo before; {words}; echo status=$?; exec cat")

    def run(self, *words):
        return subprocess.run([*self.tmux, *words], env=self.env, check=True, capture_output=True, text=True).stdout

    def press(self, *keys):
        self.run("send-keys", *keys)

    def resize(self, columns, rows):
        self.run("set-option", "-g", "window-size", "manual")
        self.run("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self):
        return self.run("capture-pane", "-p").split("\n")[:-1]

    def until(self, pattern):
        """The screen once it shows this (a regular expression over all of it)."""
        end = time.monotonic() + LIMIT
        while True:
            screen = self.screen()
            if re.search(pattern, "\n".join(screen)):
                return screen
            assert time.monotonic() < end, f"{pattern} never came:\n" + "\n".join(screen)
            time.sleep(0.05)

    def close(self):
        subprocess.run([*self.tmux, "kill-server"], env=self.env, capture_output=True)


@pytest.fixture
def top(box):
    terminals = []

    def start(size=(80, 24), **environment):
        made = Terminal(box.folder, [TRAINCTL, "--socket", box.path, "top"], size, environment)
        terminals.append(made)
        return made

    yield start
    for terminal in terminals:
        terminal.close()


KEYS = "Up/Down choose  Enter look into  c cancel  h hold  r release  u of one user"


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_the_whole_screen(box, top, size):
    running = box.submit(endless() | {"name": "one"})
    box.until(running, "running", progress=True)
    waiting = box.submit(linear(devices=2) | {"name": "two"})
    screen = top(size).until(r"one .* running .*\n.*two .* queued" + WHOLE)
    assert len(screen) == size[1] and all(len(line) <= size[0] for line in screen)
    assert re.match(r"traind  \S+ \S+  devices free: 1 of 2  jobs running: 1, waiting: 1", screen[0])
    assert screen[2].split()[:4] == ["DEVICE", "STATE", "JOB", "USER"]
    assert screen[3].split()[:3] == ["cpu:0", "assigned", str(running)]
    assert screen[4].split()[:3] == ["cpu:1", "free", "-"]
    assert re.match(rf"▸ +{running} +one ", screen[7])
    assert re.match(rf"  +{waiting} +two .*queued", screen[8])
    assert screen[-1].startswith(KEYS if size[0] > 80 else KEYS[:70])


def test_keys(box, top):
    first, second = box.submit(endless()), box.submit(endless())
    box.until(first, "running", progress=True)
    box.until(second, "running", progress=True)
    third = box.submit(linear() | {"name": "third"})
    terminal = top()
    terminal.until(rf"▸ +{first} ")
    terminal.press("Down", "Down", "h")
    terminal.until(rf"▸ +{third} +third .* held")
    assert box.show(third)["state"] == "held"
    terminal.press("r")
    terminal.until(rf"▸ +{third} +third .* queued")
    terminal.press("Up", "c")
    terminal.until(f"cancel job {second}. y/n")
    terminal.press("n")
    terminal.until(re.escape(KEYS[:70]))
    assert box.show(second)["state"] == "running"
    terminal.press("c", "y")
    [record] = box.wait(second)
    assert record["state"] == "cancelled"
    box.wait(third)
    screen = terminal.until(rf"{third} +third .* completed" + WHOLE)
    shown = [int(re.search(r"\d+", line).group()) for line in screen[7:10]]
    assert shown == [first, third, second]  # what runs, then what has ended, the youngest first
    terminal.press("h")  # what has ended cannot be held, and the daemon says so
    terminal.until(rf"job {second} .*cancelled")


def test_one_job(box, top):
    document = endless() | {"name": "curve"}
    document["train"]["epochs"] = 300  # of so many steps the daemon keeps a curve soon
    job = box.submit(document)
    box.until(job, "running", progress=True)
    terminal = top()
    terminal.until(rf"▸ +{job} ")
    terminal.press("Enter")
    screen = terminal.until(r"loss: \S+ at step" + WHOLE)
    assert any(line.startswith(f"job {job}  curve  running on cpu:0") for line in screen)
    assert screen[-1].startswith("Enter back")
    terminal.press("Enter")
    terminal.until("DEVICE +STATE")


def test_resized(box, top):
    job = box.submit(endless())
    box.until(job, "running", progress=True)
    terminal = top((80, 24))
    terminal.until(rf"▸ +{job} ")
    terminal.resize(200, 50)
    screen = terminal.until(r"(?s)release  u of one user  q leave$")
    assert len(screen) == 50 and screen[49].startswith(KEYS)
    terminal.resize(60, 12)
    screen = terminal.until(r"(?s)^traind.*r releas…$")
    assert len(screen) == 12 and all(len(line) <= 60 for line in screen)


@pytest.mark.parametrize("key", ["q", "C-c"])
def test_the_terminal_is_left_as_it_was(box, top, key):
    terminal = top()
    terminal.until("no job is queued or running")
    terminal.press(key)
    screen = terminal.until("status=0")
    assert screen[0] == "before"


def test_the_daemon_goes(box, top):
    terminal = top()
    terminal.until("no job is queued or running")
    box.kill()
    screen = terminal.until("status=5")
    assert screen[0] == "before" and "closed the connection" in "".join(screen)


def test_plain(box, top):
    job = box.submit(endless())
    box.until(job, "running", progress=True)
    screen = top(LC_ALL="C", NO_COLOR="1").until(rf"> +{job} ")
    assert all(ord(c) < 128 for line in screen for c in line)


def test_no_terminal(box):
    result = box.trainctl("top")
    assert result.returncode == 2 and "this needs a terminal" in result.stderr
