"""``k3check.testing``: the documented example, a wrong operator, an operator that raises."""

from __future__ import annotations

import pytest

from k3check import testing
from k3check.testing import assert_operator, cases
from tests.operators.test_article_functions import kda_step, swapped


def test_a_right_operator_passes() -> None:
    assert_operator(kda_step=kda_step, convention="article")


def test_the_message_is_the_report_with_the_mistake_s_name() -> None:
    with pytest.raises(AssertionError, match="K3O-983") as caught:
        assert_operator(kda_step=swapped, convention="article")
    assert "fail in the same way" in str(caught.value)


@pytest.mark.parametrize("case", cases(kda_step=kda_step, convention="article"), ids=str)
def test_a_case(case: testing.OneCase) -> None:
    case.check()


def test_an_operator_that_raises_is_a_failed_assertion() -> None:
    def kda_step(S_prev, k, v, alpha, beta):  # type: ignore[no-untyped-def]
        raise ValueError("not today")

    with pytest.raises(AssertionError, match="not today"):
        assert_operator(kda_step=kda_step, convention="article")


@pytest.mark.parametrize(
    "given", [{}, {"kda_stpe": kda_step}, {"kda_step": kda_step, "profile": "x"}]
)
def test_wrong_names_say_what_there_is(given: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="choose from"):
        assert_operator(**given)  # type: ignore[arg-type]


def test_the_documented_example_runs_with_other_imports() -> None:
    code = testing.__doc__.partition("::\n")[2]  # type: ignore[union-attr]
    lines = [line[4:] for line in code.splitlines() if line.strip()]
    assert len(lines) == 8
    code = "\n".join(lines).replace("kda_chunk=chunk_kda", "kda_step=chunk_kda")
    code = code.replace('"fla"', '"article"').replace("from kernels.kda import chunk_kda", "")
    space: dict[str, object] = {"chunk_kda": kda_step}
    exec(code, space)
    space["test_chunk_kda"]()  # type: ignore[operator]
