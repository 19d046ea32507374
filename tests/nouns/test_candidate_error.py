"""The user's exceptions are told apart and trimmed to the user's frames."""

from __future__ import annotations

import inspect

import pytest

from k3check.nouns.candidate_error import CandidateError, clipped, guarded


class OutOfMemoryError(RuntimeError):
    """Named like torch's."""


class AcceleratorError(RuntimeError):
    """Named like torch's."""


class MuteError(Exception):
    def __str__(self):
        raise ValueError("no text")


def raising(error):
    def operator():
        raise error

    return guarded(operator)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("bad"), "raised"),
        (SystemExit(3), "exit"),
        (KeyboardInterrupt(), "exit"),
        (MemoryError(), "memory"),
        (OutOfMemoryError("CUDA out of memory."), "memory"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "memory"),
        (RuntimeError("CUDA error: out of memory"), "memory"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "device"),
        (RuntimeError("Triton Error [CUDA]: misaligned address"), "device"),
        (RuntimeError("HIP error: invalid device function"), "device"),
        (AcceleratorError("anything"), "device"),
        (ValueError("the CUDA error: in a text"), "raised"),
        (RuntimeError("expected a CUDA tensor"), "raised"),
    ],
)
def test_kinds(error, kind):
    with pytest.raises(CandidateError) as caught:
        raising(error)()
    assert caught.value.kind == kind


def test_only_the_users_frames_remain():
    with pytest.raises(CandidateError) as caught:
        raising(ValueError("bad\nsecond line"))()
    error = caught.value
    assert error.error == "ValueError: bad"
    assert error.traceback.startswith("Traceback (most recent call last):\n  File ")
    assert error.traceback.endswith("ValueError: bad\nsecond line")
    assert "in operator" in error.traceback
    assert "candidate_error.py" not in error.traceback.replace("test_candidate_error.py", "")
    assert error.__suppress_context__


def test_a_chain_of_exceptions_is_kept():
    def operator():
        try:
            {}["first"]
        except KeyError as error:
            raise ValueError("second") from error

    with pytest.raises(CandidateError) as caught:
        guarded(operator)()
    assert "KeyError: 'first'" in caught.value.traceback
    assert "direct cause" in caught.value.traceback


def test_an_exception_without_text_and_one_that_has_none_to_give():
    with pytest.raises(CandidateError) as caught:
        raising(KeyboardInterrupt())()
    assert caught.value.error == "KeyboardInterrupt"
    with pytest.raises(CandidateError, match="MuteError: <its text cannot be shown>"):
        raising(MuteError())()


def test_endless_recursion_stays_short():
    def operator():
        return operator()

    with pytest.raises(CandidateError) as caught:
        guarded(operator)()
    assert "RecursionError" in caught.value.error
    assert len(caught.value.traceback.splitlines()) < 70


def test_long_texts_are_clipped_in_the_middle():
    text = clipped("\n".join(f"line {n}" for n in range(500)))
    assert text.startswith("line 0\n")
    assert text.endswith("line 499")
    assert "... 440 lines ..." in text
    assert len(clipped("x" * 10**6)) < 8100


def test_the_signature_stays_visible_and_guarding_is_idempotent():
    def operator(q, k, *, scale=1.0):
        return q, k, scale

    wrapped = guarded(operator)
    assert list(inspect.signature(wrapped).parameters) == ["q", "k", "scale"]
    assert wrapped(1, k=2) == (1, 2, 1.0)
    assert guarded(wrapped) is wrapped


def test_a_nested_guard_passes_the_error_on():
    inner = raising(ValueError("inner"))
    with pytest.raises(CandidateError) as caught:
        guarded(lambda: inner())()
    assert caught.value.error == "ValueError: inner"


def test_callable_objects_without_a_name():
    class Kernel:
        def __call__(self, q):
            return q + 1

    assert guarded(Kernel())(1) == 2
