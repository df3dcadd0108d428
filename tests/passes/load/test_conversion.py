"""jaxlib ends its process for some damaged modules: the reader's process stays, and says what is wrong."""

from __future__ import annotations

import gzip
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import hlo_verify
from hlo_verify import Verdict, cli, options
from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jaxlib_hlo import hlo_text_to_proto
from hlo_verify.passes.load import conversion
from hlo_verify.passes.load.load import load
from hlo_verify.passes.read import proto_edits
from hlo_verify.workers import Pool

PAIR = """HloModule m

ENTRY %main (x: f32[8], y: f32[4]) -> f32[4] {
  %x = f32[8] parameter(0)
  %y = f32[4] parameter(1)
  %t = (f32[8], f32[4]) tuple(%x, %y)
  ROOT %e = f32[4] get-tuple-element(%t), index=1
}
"""
TUPLE_INDEX = 13  # HloInstructionProto.tuple_index


def beyond_the_tuple() -> bytes:
    """A get-tuple-element of an element that there is not."""

    def edit(instruction: bytes) -> bytes:
        return b"".join(
            proto_edits.varint(number << 3) + proto_edits.varint(7) if number == TUPLE_INDEX else raw
            for number, _, _, raw in proto_edits.fields_of(instruction)
        )

    return proto_edits.edit_instructions(hlo_text_to_proto(PAIR), edit)


def other_elements() -> bytes:
    """A reshape to another number of elements."""
    return PAIR.replace("get-tuple-element(%t), index=1", "reshape(%x)").encode()


def no_text() -> bytes:
    """Bytecode with the name of an operation that is no text."""
    return load(PAIR).bytecode().replace(b"return", b"retu\xffn")


def a_place_that_is_no_text() -> bytes:
    """Bytecode with a location whose name is no text."""
    named = PAIR.replace("get-tuple-element(%t), index=1", 'negate(%y), metadata={op_name="somewhere"}')
    return load(named).bytecode().replace(b"somewhere", b"some\xff\xffere")


DAMAGED = [beyond_the_tuple, other_elements, no_text, a_place_that_is_no_text]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("make", DAMAGED)
@pytest.mark.parametrize("compressed", [False, True])
def test_what_ends_jaxlib_is_an_input_error(
    make: Callable[[], bytes], compressed: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(gzip.compress(make()) if compressed else make())
    assert cli.main([str(path), str(path), "--devices", "1"]) == options.INPUT_ERROR
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"hlo-verify: error[HV404]: {path}: ")
    if make is not other_elements:  # jaxlib 0.12 says what is wrong
        assert "damaged: jaxlib gives no answer when it reads it, its process was ended by signal" in err
    assert err.count("\n") == 1


def test_the_next_file_is_read() -> None:
    for make in DAMAGED:
        with pytest.raises(InputError):
            load(make())
        assert load(PAIR).name == "m"


def test_a_file_is_not_taken_for_damaged_by_what_was_before_it() -> None:
    load(PAIR)
    (process,) = conversion._pool(os.getpid()).processes
    os.kill(process, signal.SIGABRT)
    assert load(PAIR).name == "m"


def test_strings_that_are_no_text_are_read() -> None:
    """As long as they are attributes: calls may have any bytes there."""
    text = PAIR.replace(
        "get-tuple-element(%t), index=1", 'custom-call(%x), custom_call_target="k", backend_config="é~~"'
    )
    module = load(load(text).bytecode().replace("é".encode() + b"~~", b"\xff\xfe\xfd~"))
    assert module.main.ops[-1].attributes["backend_config"] == "\xff\xfe\xfd~"


def test_one_process_reads_all_files() -> None:
    load(PAIR)
    pool = conversion._pool(os.getpid())
    (process,) = pool.processes
    for _ in range(3):
        load(PAIR)
    assert pool.processes == (process,)
    conversion.start()
    assert pool.processes == (process,)


@pytest.mark.parametrize(
    ("contents", "needed"),
    [
        (PAIR.encode(), True),
        (gzip.compress(PAIR.encode()), True),
        (b"\n  module @m {\n}\n", False),
        (b"#loc = loc(unknown)\nmodule {}\n", False),
        (b"", False),
    ],
)
def test_the_process_is_started_for_files_that_need_it(contents: bytes, needed: bool, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(contents)
    assert conversion.needed(path) is needed
    assert not conversion.needed(tmp_path / "nowhere")


def test_reading_ends_with_the_time_that_the_user_gave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser that goes on for ever is ended, and the next file is read."""
    file = tmp_path / "m.hlo"
    file.write_text(PAIR)
    monkeypatch.setattr(conversion, "_pool", lambda process: forever)
    with Pool(_go_on, jobs=1, seconds=conversion.SECONDS, memory=conversion.MEMORY) as forever:
        with pytest.raises(InputError, match="not read within the time limit") as caught:
            hlo_verify.verify(file, file, devices=1, time_limit=0.2)
        assert caught.value.code is Input.NOT_READ_IN_TIME
    monkeypatch.undo()
    assert hlo_verify.verify(file, file, devices=1, time_limit=None).verdict is Verdict.PROVED


def _go_on(_: object) -> None:
    threading.Event().wait()
