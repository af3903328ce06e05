"""Runs the programs of `examples/`, and builds each that needs it once."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from service import ROOT

EXAMPLES = ROOT / "examples"
TARGET = (ROOT / os.environ.get("CARGO_TARGET_DIR", "target")).resolve() / "examples"
RUN_S_MAX = 60
BUILD_S_MAX = 600
REFUSED = "127.0.0.1:1"
"""An address at which nothing listens."""


def missing(what):
    """Skips the test; in CI, which has everything, it fails."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing")
    pytest.skip(f"{what} is missing")


def need(tool, package):
    if shutil.which(tool) is None:
        missing(f"{tool} (apt install {package})")


def run(command, cwd, timeout_s=RUN_S_MAX, **variables):
    command = [str(part) for part in command]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout_s, env=environment)


def output_of(command, cwd, **options):
    """Returns the output of a program that succeeds."""
    done = run(command, cwd, **options)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def assert_reports_an_error(command, cwd, text="error: ", **options):
    """Checks that a program fails with a message for people."""
    done = run(command, cwd, **options)
    assert done.returncode not in (0, -11) and text in done.stderr, f"{command}: {done.returncode} {done.stderr}"
    assert "Traceback" not in done.stderr and "panicked" not in done.stderr, done.stderr


def cargo(command, folder, *arguments):
    """Runs cargo for a package; all packages share a target folder."""
    options = ["--manifest-path", EXAMPLES / folder / "Cargo.toml", "--target-dir", TARGET]
    return output_of(["cargo", command, "--quiet", *options, *arguments], ROOT, timeout_s=BUILD_S_MAX)


@functools.cache
def rust_program(folder, name):
    cargo("build", folder)
    return TARGET / "debug" / name


@functools.cache
def quickfix_program():
    need("g++", "g++")
    if not Path("/usr/include/quickfix/Session.h").exists():
        missing("QuickFIX (apt install libquickfix-dev)")
    TARGET.mkdir(parents=True, exist_ok=True)
    options = ["-std=c++14", "-Wno-deprecated", "-o", TARGET / "fix-client-quickfix"]
    source = EXAMPLES / "fix" / "client.cpp"
    output_of(["g++", *options, source, "-lquickfix", "-lpthread"], ROOT, timeout_s=BUILD_S_MAX)
    return TARGET / "fix-client-quickfix"


@functools.cache
def node_program():
    """Returns a copy of the JavaScript example, so that the repository gets no `node_modules`."""
    need("npm", "npm")
    copy = TARGET / "stomp-js"
    copy.mkdir(parents=True, exist_ok=True)
    for name in ["package.json", "consumer.js"]:
        shutil.copy(EXAMPLES / "stomp" / "js" / name, copy / name)
    options = ["--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"]
    output_of(["npm", "install", *options], copy, timeout_s=BUILD_S_MAX)
    return copy / "consumer.js"
