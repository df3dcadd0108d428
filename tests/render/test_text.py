"""Text for people."""

from __future__ import annotations

from dataclasses import replace

from hlo_verify.diagnostics import Diagnostic, Input, Internal, Severity
from hlo_verify.render import Failure
from hlo_verify.render.text import FOLD, LINE, LONGEST, Style, render
from hlo_verify.report import Spent, Verdict
from tests.programs import FINDING, chain, report

P, R, U = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN


def test_proved() -> None:
    assert render([report(P, P)], Style(), several=False) == (
        "PROVED   result[0]\n"
        "PROVED   result[1]\n"
        "\n"
        "Not understood, so treated as equal to nothing else:\n"
        "  HV202  sort at train.py:60: along a split dimension\n"
        "Assumed: real arithmetic; no NaN\n"
        "PROVED   2 results on 8 devices, 2 stages (1 shared), 1.4 s\n"
    )


def test_what_was_inferred_is_told_line_by_line() -> None:
    lines = ("argument x: dimension 0 in 2", "result y: whole on every device")
    text = render([replace(report(P), inferred=lines)], Style(), several=False)
    assert (
        "Inferred, since no module says it:\n  argument x: dimension 0 in 2\n  result y: whole on every device\nAssumed"
        in text
    )


def test_what_was_compared_and_left_open_is_told() -> None:
    lines = ("result y, which XLA returns: whole on every device",)
    text = render([replace(report(P), compared="one with another", left_open=lines)], Style(), several=False)
    assert "Compared: one with another\nLeft open by the module, so taken from XLA:\n  result y, which" in text


def test_unknown_says_where_and_what_differs() -> None:
    assert render([report(P, U)], Style(), several=False) == (
        "PROVED   result[0]\n"
        "UNKNOWN  result[1]  no logical tensor matches  (train.py:57)\n"
        "\n"
        "UNKNOWN  result[1]  HV301: the two terms are not shown to be equal\n"
        "  operation  %5 = stablehlo.multiply %3, %4 : tensor<512x4096xf32>\n"
        "  source     train.py:57\n"
        "  looks like  HV002: a partial value is never reduced\n"
        "  term       sum k<512. x[i,k] * w[k,j]\n"
        "  expected   sum k<4096. x[i,k] * w[k,j]\n"
        "  nearest    y: sum over d1 is missing\n"
        "\n"
        "Not understood, so treated as equal to nothing else:\n"
        "  HV202  sort at train.py:60: along a split dimension\n"
        "Assumed: real arithmetic; no NaN\n"
        "UNKNOWN  1 of 2 results proved on 8 devices, 2 stages (1 shared), 1.4 s\n"
    )


def test_unknown_suspects_what_was_seen_and_else_says_what_was_tried() -> None:
    """A defect is suspected where numbers differ; inputs that were not evaluated say nothing."""

    def told(seems_to_differ: bool, spent: Spent) -> str:
        result = replace(report(U).results[0], seems_to_differ=seems_to_differ, spent=spent)
        return render([replace(report(), results=(result,))], Style(), several=False)

    tried = "  tried      no difference was seen for 12 inputs\n"
    assert tried in told(False, Spent(inputs=12)) and "suspected" not in told(False, Spent(inputs=12))
    assert "  suspected  HV002" in told(True, Spent(inputs=12)) and "tried" not in told(True, Spent(inputs=12))
    for spent in (Spent(), Spent(inputs=12, not_evaluated=("sort",)), Spent(("evaluation_work",), inputs=12)):
        assert "tried" not in told(False, spent)


def test_a_finding_is_shown_once_for_all_that_it_stopped() -> None:
    text = render([report(*[U] * 6)], Style(), several=False)
    assert text.count("operation  ") == 1
    assert "UNKNOWN  result[0], result[1], result[2] and 3 more  HV301: " in text
    first = "UNKNOWN  result[0], result[1], result[2] and 3 more  no logical tensor matches  (train.py:57)"
    assert text.splitlines()[:2] == [first, ""]
    assert render([report(*[U] * 6)], Style(verbose=True), several=False).count("no logical tensor matches") == 6
    assert render([report(*[U] * 4)], Style(), several=False).count("no logical tensor matches") == 4


def test_a_long_reason_is_cut() -> None:
    result = replace(report(U).results[0], reason="why " * 100, finding=None)
    line = render([replace(report(), results=(result,))], Style(), several=False).splitlines()[0]
    assert line.endswith("…  (train.py:57)") and len(line) < LINE + 50


def test_a_source_line_is_not_said_twice() -> None:
    result = replace(report(U).results[0], reason="dot_general (train.py:57): the sum over d is missing", finding=None)
    line = render([replace(report(), results=(result,))], Style(), several=False).splitlines()[0]
    assert line == "UNKNOWN  result[0]  dot_general (train.py:57): the sum over d is missing"


def test_refuted_is_counted() -> None:
    summary = render([report(P, R, U)], Style(), several=False).splitlines()[-1]
    assert summary.startswith("REFUTED  1 of 3 results proved, 1 refuted on 8 devices")


def test_many_proved_results_share_a_line() -> None:
    many = report(*[P] * (FOLD + 1), U)
    lines = render([many], Style(), several=False).splitlines()
    assert lines[0] == f"PROVED   {FOLD + 1} results"
    assert lines[1].startswith(f"UNKNOWN  result[{FOLD + 1}]")
    assert render([report(*[P] * FOLD)], Style(), several=False).count("PROVED   result") == FOLD
    assert render([many], Style(verbose=True), several=False).count("PROVED   result") == FOLD + 1


def test_a_proof_with_a_reason_is_never_folded() -> None:
    """A bounded proof has to be seen."""
    proved = report(*[P] * (FOLD + 5))
    bounded = replace(proved.results[3], reason="bounded: hidden <= 64")
    text = render(
        [replace(proved, results=(*proved.results[:3], bounded, *proved.results[4:]))], Style(), several=False
    )
    assert "PROVED   result[3]  bounded: hidden <= 64\n" in text


def test_verbose_shows_stages_with_their_lineage() -> None:
    text = render([report(P)], Style(verbose=True), several=False)
    assert "Stages:\n  dot_general@train.py:50[128*d + i,j]\n      dot_general  (train.py:50)\n" in text
    assert "  dot_general@train.py:51[128*d + i,j]  (as before)\n" in text
    assert "Stages:" not in render([report(P)], Style(), several=False)


def test_verbose_names_the_laws_that_were_used() -> None:
    text = render([report(P)], Style(verbose=True), several=False)
    assert "Laws used:\n  12 x  digits joined   sum a<m. sum b<n. g(a + m*b) = sum k<m*n. g(k)\n   1 x  sum of" in text
    assert "Laws used:" not in render([report(P)], Style(), several=False)
    assert "Laws used:" not in render([replace(report(P), laws=())], Style(verbose=True), several=False)


def test_long_terms_are_cut_unless_verbose() -> None:
    long = replace(FINDING, found="x" * (LONGEST + 1) + "end")
    text = render([report(U, finding=long)], Style(), several=False)
    assert " ... " in text
    assert "xend\n" in text
    assert max(map(len, text.splitlines())) < LONGEST + 20
    assert long.found in render([report(U, finding=long)], Style(verbose=True), several=False)


def test_a_reason_stays_on_its_line() -> None:
    result = replace(report(U).results[0], reason="one\n  two", finding=None)
    assert "result[0]  one two  (train.py:57)\n" in render(
        [replace(report(), results=(result,))], Style(), several=False
    )


def test_a_result_without_a_name() -> None:
    result = replace(report(P).results[0], name="", index=7)
    assert "PROVED   result 7\n" in render([replace(report(), results=(result,))], Style(), several=False)


def test_no_results_is_not_proved() -> None:
    assert render([report()], Style(), several=False).splitlines()[-1].startswith("UNKNOWN  0 results")


def test_several_modules() -> None:
    broken = Diagnostic(Input.ELIDED_CONSTANTS, Severity.ERROR, "constants are missing")
    defect = Diagnostic(Internal.DEFECT, Severity.ERROR, "KeyError")
    outcomes = [report(P, name="a"), Failure("b", broken), Failure("c", defect)]
    text = render(outcomes, Style(), several=True)
    assert text.startswith("a\n\nPROVED   result[0]\n")
    assert "\nb\n\nUNKNOWN  error[HV405]: constants are missing (see hlo-verify --explain HV405)\n" in text
    assert "\nc\n\nUNKNOWN  internal error[HV901]: KeyError (see hlo-verify --explain HV901)\n" in text
    assert text.endswith("\nUNKNOWN  3 modules: 1 proved, 2 not verified\n")


def test_colors_surround_the_padded_verdict() -> None:
    colored = render([report(P, U)], Style(color=True), several=False)
    assert "\033[1;32mPROVED \033[0m  result[0]" in colored
    plain = render([report(P, U)], Style(), several=False)
    for code in ("\033[1;32m", "\033[1;33m", "\033[2m", "\033[0m"):
        colored = colored.replace(code, "")
    assert colored == plain


def test_a_chain_has_a_line_for_each_step_and_says_which_pass_did_it() -> None:
    text = render([chain(P, R, U, P)], Style(), several=True)
    assert text.startswith(
        "jit_step\n"
        "\n"
        "PROVED   0000  simplification: pass-0    0.5 s\n"
        "REFUTED  0001  simplification: pass-1    0.5 s  lost\n"
        "UNKNOWN  0002  simplification: pass-2    0.5 s  as before\n"
        "PROVED   0003  simplification: pass-3    0.5 s\n"
        "\n"
        "The value was changed first in the pass simplification: pass-1 (step 1): m.1.txt computes something else than "
        "m.0.txt\n"
        "\n"
        "The program is proved again from simplification: pass-3 (step 3) on.\n"
        "\n"
        "m.1.txt, compared with m.0.txt:\n"
        "\n"
        "REFUTED  result[0]"
    )
    assert "\nAssumed: no NaN\nREFUTED  2 of 4 dumps proved on 8 devices, 2.5 s\n" in text


def test_of_an_interrupted_chain_it_is_said_what_is_missing() -> None:
    found = replace(chain(P, P), missing=3)
    assert found.verdict is U
    text = render([found], Style(), several=True)
    assert "\n3 dumps not looked at: interrupted\n" in text
    assert "\nUNKNOWN  2 of 5 dumps proved, 2.5 s\n" in text


def test_the_start_of_a_pipeline_is_no_pass() -> None:
    found = chain(P, R)
    steps = found.steps[0], replace(found.steps[1], after="pipeline-start")
    text = render([replace(found, steps=steps)], Style(), several=True)
    assert "The value was changed first between steps 0 and 1: m.1.txt computes something else than m.0.txt\n" in text


def test_after_what_is_unknown_no_pass_is_the_first() -> None:
    text = render([chain(P, U, R)], Style(), several=True)
    assert "The thread is lost in the pass simplification: pass-1 (step 1): lost\n" in text
    assert "The value was changed since the last dump that is proved, at the latest in the pass simplification" in text


def test_what_a_pipeline_starts_with_was_made_by_the_pass_that_was_next() -> None:
    from hlo_verify.render.text import changed_in
    from hlo_verify.report import ChainReport, Step

    names = (
        "m.0003.spmd.after_shardy.before_spmd-partitioning.txt",
        "m.0004.cleanup.after_pipeline-start.before_dce.txt",
    )
    steps = [Step(n + 3, "cleanup", "pipeline-start", file, R, "", "", "", "", 0.0) for n, file in enumerate(names)]
    chain = ChainReport("m", tuple(steps), (), 2, 0.0)
    assert changed_in(chain, steps[1]) == "in the pass spmd-partitioning (between steps 3 and 4)"
    assert changed_in(chain, steps[0]) == "before cleanup: pipeline-start (step 3)"
