"""Acts without effect and unconfirmed reports: when a run is done, asked again, not confirmed or stuck."""

from __future__ import annotations

import pytest

from peekaboo_min.agents.actions import Action
from peekaboo_min.agents.loop import Progress
from peekaboo_min.agents.run import AgentStop
from peekaboo_min.agents.target import Outcome
from peekaboo_min.core.models import Point

SAVE = Action("press", key="s", modifiers=("cmd",))
LAST_SAVE = Action("press", key="s", modifiers=("cmd",), is_last=True)
CHANGED, UNCHANGED = Outcome("the window changed", True), Outcome("nothing changed")
UNKNOWN = Outcome("it is not known whether anything changed")
REFUSED = Outcome("it was not done: WINDOW_COVERED", is_delivered=False, refusal="WINDOW_COVERED")
MISSED = Outcome("the window changed; the pointer was not seen there afterwards", True, is_delivered=False)


def click(x: float, y: float) -> tuple[Action, Outcome]:
    return Action("click", Point(x, y), why=f"try {x}"), Outcome("nothing changed", pixel=Point(x, y))


def test_a_last_act_that_was_delivered_and_changed_something_ends_the_run() -> None:
    assert Progress().note_act(LAST_SAVE, CHANGED, has_effect=True)
    assert not Progress().note_act(SAVE, CHANGED, has_effect=True)


@pytest.mark.parametrize("outcome", [UNCHANGED, UNKNOWN])
def test_a_last_act_without_a_visible_effect_is_one_question_and_then_not_confirmed(outcome: Outcome) -> None:
    progress = Progress()
    assert not progress.note_act(LAST_SAVE, outcome, has_effect=False)
    (fact,) = progress.facts()
    assert "`press cmd+s`, was delivered" in fact and outcome.effect in fact
    with pytest.raises(AgentStop) as caught:
        progress.note_report()
    assert caught.value.status == "not_confirmed" and "not confirmed" in caught.value.message


def test_an_act_after_that_question_continues_the_run() -> None:
    progress = Progress()
    progress.note_act(LAST_SAVE, UNCHANGED, has_effect=False)
    assert not progress.note_act(Action("press", key="tab"), CHANGED, has_effect=True)
    assert progress.facts() == [] and progress.note_report() == ""


@pytest.mark.parametrize("outcome", [REFUSED, MISSED])
def test_a_refused_or_missed_act_never_ends_the_run(outcome: Outcome) -> None:
    progress = Progress()
    progress.note_act(SAVE, CHANGED, has_effect=True)
    assert not progress.note_act(LAST_SAVE, outcome, has_effect=bool(outcome.has_changed))
    assert outcome.effect in progress.note_report(), "asked once more"
    assert outcome.effect in progress.facts()[0]
    with pytest.raises(AgentStop):
        progress.note_report()


def test_a_report_without_any_effect_is_asked_once_more() -> None:
    progress = Progress()
    progress.note_act(SAVE, UNCHANGED, has_effect=False)
    assert progress.note_report() == "none of your actions had a visible effect"


def test_a_goal_that_was_reached_before_the_run_is_done() -> None:
    assert Progress().note_report() == ""


def test_the_same_act_without_effect_is_reported_at_three_and_stuck_at_five() -> None:
    progress = Progress()
    facts = []
    for shift in range(4):
        progress.note_act(*click(100 + shift, 50), has_effect=False)
        facts.append(progress.facts())
    assert facts[:2] == [[], []]
    assert facts[2] == ["`click 102,50` had no effect 3 times. Do something else."]
    assert "4 times" in facts[3][0]
    with pytest.raises(AgentStop) as caught:
        progress.note_act(*click(100, 50), has_effect=False)
    assert caught.value.status == "stuck" and "click 100,50" in caught.value.message


def test_two_acts_by_turns_are_counted_each() -> None:
    progress = Progress()
    for _ in range(4):
        progress.note_act(*click(100, 50), has_effect=False)
        progress.note_act(SAVE, UNCHANGED, has_effect=False)
    with pytest.raises(AgentStop):
        progress.note_act(*click(100, 50), has_effect=False)


def test_other_places_and_effects_between_are_no_repetition() -> None:
    progress = Progress()
    for at in range(9):
        progress.note_act(*click(100 + 20 * at, 50), has_effect=False)
    assert progress.facts() == []
    for _ in range(3):
        progress.note_act(SAVE, UNCHANGED, has_effect=False)
        progress.note_act(SAVE, UNCHANGED, has_effect=False)
        progress.note_act(SAVE, CHANGED, has_effect=True)
    assert progress.facts() == []
