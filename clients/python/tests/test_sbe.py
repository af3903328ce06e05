"""Binary bodies: three decoders made from one schema read what the server writes."""

import json
import os
import shutil
import subprocess
import sys
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from pitlane import sbe

SBE = Path(__file__).resolve().parents[2] / "sbe"
# In the reference data, or equal to another member.
ONLY_JSON = ("symbol", "venue", "feed", "dateTime")


def samples() -> "list[tuple[str, dict]]":
    """Return the binary bodies and the JSON of the same messages; tests/sbe.rs checks them."""
    lines = (SBE / "samples.txt").read_text().splitlines()
    pairs = [line.split(" ", 1) for line in lines if not line.startswith("#")]
    return [(body, json.loads(text, parse_float=Decimal, parse_int=Decimal)) for body, text in pairs]


def without(message: dict, names: "tuple[str, ...]") -> dict:
    return {name: value for name, value in message.items() if name not in names}


def test_the_decoders_are_those_of_the_schema() -> None:
    check = subprocess.run([sys.executable, SBE / "generate.py", "--check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr


def test_python_reads_the_messages_of_the_server() -> None:
    types = set()
    for body, expected in samples():
        (message,) = sbe.decode(bytes.fromhex(body))
        types.add(message["type"])
        assert without(message, ONLY_JSON) == without(expected, ONLY_JSON)
        if message["type"] == "TICK":
            moment = datetime.fromisoformat(expected["dateTime"].replace("Z", "+00:00"))
            assert datetime.fromtimestamp(message["dateTime"] / 1e9, timezone.utc) == moment
    assert types == {
        "TICK",
        "BOOK",
        "SNAPSHOT",
        "UPDATE",
        "ORDER_STATUS",
        "TRADE",
        "SECURITY_STATUS",
        "BAR",
    }


def test_several_messages_share_a_body() -> None:
    bodies = [bytes.fromhex(body) for body, _ in samples()]
    assert len(sbe.decode(b"".join(bodies))) == len(bodies)


def test_a_body_that_is_cut_short_or_foreign_is_refused() -> None:
    assert sbe.decode(b"") == []
    for body, _ in samples():
        whole = bytes.fromhex(body)
        for length in range(1, len(whole)):
            with pytest.raises(sbe.SbeError):
                sbe.decode(whole[:length])
        with pytest.raises(sbe.SbeError, match="has no message"):
            sbe.decode(whole[:4] + b"\x09\x00" + whole[6:])
        with pytest.raises(sbe.SbeError):
            sbe.decode(b"\x01\x00" + whole[2:])


def test_cpp_reads_the_same(tmp_path: Path) -> None:
    compiler = shutil.which("c++")
    if compiler is None and "CI" not in os.environ:
        pytest.skip("there is no C++ compiler")
    assert compiler is not None, "there is no C++ compiler"
    program = tmp_path / "check"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1"]
    subprocess.run([compiler, *flags, SBE / "cpp/check.cpp", "-o", program], check=True)
    bodies = [body for body, _ in samples()]
    cut = [body[: len(body) // 4 * 2] for body in bodies]
    together = subprocess.run([program], input="".join(bodies), capture_output=True, text=True, check=True)
    result = subprocess.run([program], input="\n".join(bodies + cut), capture_output=True, text=True, check=True)
    lines = result.stdout.splitlines()
    assert len(lines) == len(bodies + cut)
    assert together.stdout.splitlines() == lines[: len(bodies)], "several messages share a body"
    for line, (body, _) in zip(lines, samples()):
        (expected,) = sbe.decode(bytes.fromhex(body))
        assert json.loads(line, parse_float=Decimal, parse_int=Decimal) == expected
    assert all(line.startswith("error: ") for line in lines[len(bodies) :])
