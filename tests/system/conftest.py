"""Fixtures of the system tests, and TAP for automake's driver (--tap)."""

import os
import shutil
import sys
import tempfile

import pytest

from traind import Box


def pytest_addoption(parser):
    parser.addoption("--tap", action="store_true", help="print TAP on standard output")


class Tap:
    """One TAP line a test; pytest's own report goes to standard error."""

    def __init__(self, out):
        self.out = out
        self.n = 0

    def line(self, ok, report, note=""):
        self.n += 1
        self.out.write(f"{ok} {self.n} - {report.nodeid}{note}\n")
        self.out.flush()

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            self.line("ok", report, f" # SKIP {reason}")
        elif report.failed:
            self.line("not ok", report, "" if report.when == "call" else f" ({report.when})")
        elif report.when == "call":
            self.line("ok", report)

    def pytest_sessionfinish(self):
        self.out.write(f"1..{self.n}\n")
        self.out.flush()


def pytest_configure(config):
    if config.getoption("--tap"):
        out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        sys.stdout = os.fdopen(os.dup(2), "w")
        config.pluginmanager.register(Tap(out), "tap")


@pytest.fixture
def box(request):
    """A daemon of its own in user mode with two CPU devices; `@pytest.mark.parametrize("box", …, indirect)` for others."""
    options = getattr(request, "param", {})
    folder = tempfile.mkdtemp(prefix="traind-test-")
    made = Box(folder, **options)
    made.start()
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def folder():
    path = tempfile.mkdtemp(prefix="traind-test-")
    yield path
    shutil.rmtree(path, ignore_errors=True)
