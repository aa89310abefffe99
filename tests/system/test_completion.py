"""trainctl completion, in the shells themselves."""

import os
import re
import subprocess

import pytest
from traind import TRAINCTL, endless

SHELLS = {
    # each prints the candidates of the words in "$@", the last of which is being typed
    "bash": ["bash", "-c", 'source <(trainctl completion bash); COMP_WORDS=(trainctl "$@"); COMP_CWORD=$#;'
             ' _trainctl; printf "%s\\n" "${COMPREPLY[@]}"', "bash"],
    # zsh's completion functions only work behind a prompt: what they are given is printed
    "zsh": ["zsh", "-fc", 'compdef() { }; _files() { print -l *(N) }; _describe() { print -rl -- "${(@P)2}" };'
            ' source <(trainctl completion zsh); words=(trainctl "$@"); CURRENT=$#words; _trainctl', "zsh"],
    "fish": ["fish", "-c", 'trainctl completion fish | source; complete -C "trainctl $argv" | string split -f 1 \\t; true'],
}


def complete(shell, *words, folder="/", socket="/nowhere"):
    words = [" ".join(words)] if shell == "fish" else list(words)
    env = {**os.environ, "PATH": f"{os.path.dirname(TRAINCTL)}:{os.environ['PATH']}", "TRAIND_SOCKET": socket,
           "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder}
    done = subprocess.run([*SHELLS[shell], *words], env=env, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    end = r"(?<!\\):" if shell == "zsh" else r"\t"  # of a word, before its help
    found = [re.split(end, line)[0].replace("\\", "") for line in done.stdout.splitlines()]
    prefix = words[-1].split(" ")[-1]  # which zsh looks at behind its prompt only
    return sorted(word for word in found if word.startswith(prefix) and word != "")


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_and_options(shell, folder):
    assert complete(shell, "ca", folder=folder) == ["cancel"]
    assert complete(shell, "model", "s", folder=folder) == ["show", "summary"]
    assert complete(shell, "wait", "--", folder=folder) == ["--any", "--help", "--json", "--socket", "--timeout"]
    assert complete(shell, "list", "--state", "ru", folder=folder) == ["running"]


@pytest.mark.parametrize("shell", SHELLS)
def test_files(shell, folder):
    open(os.path.join(folder, "a job.json"), "w").close()
    assert complete(shell, "submit", "a", folder=folder) == ["a job.json"]


@pytest.mark.parametrize("shell", SHELLS)
def test_jobs_and_devices(shell, box):
    job = box.submit(endless())
    assert complete(shell, "show", "", folder=box.folder, socket=box.path) == [str(job)]
    assert complete(shell, "plan", "--devices", "", folder=box.folder, socket=box.path) == ["cpu:0", "cpu:1"]
    assert complete(shell, "show", "", folder=box.folder) == []  # no daemon, no complaint


def test_a_shell_that_is_not_known(box):
    done = box.trainctl("completion", "csh")
    assert done.returncode == 2 and "allowed are bash, zsh, fish" in done.stderr
