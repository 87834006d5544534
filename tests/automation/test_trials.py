"""A few seeded trials of each class of tests/trials.py; thousands of them are run by hand.

What the windows, the clipboard and the files say decides. A race may end either way: what is asserted is that
the answer is true, that nothing hangs, leaks or raises, and that calm acts are not doubted.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Optional

import pytest
from hostile import calm, clicks, faults, keys, paste, wire
from hostile.tally import Tally, table
from worlds import X_PROGRAMS, need

SEED = "suite"
Driver = Callable[[random.Random, int, Optional[str]], Tally]


def tried(driver: Driver, trials: int, kind: Optional[str] = None) -> Tally:
    """A small run of a class; whatever the class is about, these must not be."""
    need(*X_PROGRAMS)
    tally = driver(random.Random(SEED), trials, kind)
    shown = table([tally])
    assert tally.trials >= trials, shown
    assert (tally.unreported, tally.hung, tally.tracebacks, tally.leaked) == (0, 0, 0, 0), shown
    return tally


def assert_nothing_wrong(tally: Tally) -> None:
    assert (tally.wrong, tally.lost) == (0, 0), table([tally])


@pytest.mark.parametrize("kind", ["classless cover", "menu"])
def test_a_click_while_something_comes_over_the_window_is_never_reported_as_delivered_elsewhere(
    kind: str,
) -> None:
    tried(clicks.race_clicks, 5, kind)


@pytest.mark.parametrize("driver", [clicks.race_drags, clicks.race_wheels])
def test_a_drag_and_the_wheel_in_the_same_race_are_reported_as_truly(driver: Driver) -> None:
    assert tried(driver, 3, "nothing").acted == 3
    tried(driver, 5)


def test_a_standing_cover_without_a_class_gets_no_click() -> None:
    tally = tried(clicks.hold_covers, 4)
    assert_nothing_wrong(tally)
    assert tally.acted == 0


def test_typing_under_attack_loses_at_most_a_piece_and_says_so() -> None:
    assert_nothing_wrong(tried(keys.steal_focus, 8))


def test_several_clients_at_once_mix_and_lose_nothing_even_when_one_is_killed() -> None:
    def three_clients(rng: random.Random, trials: int, _kind: Optional[str]) -> Tally:
        return keys.crowd(rng, trials, clients=3)

    assert_nothing_wrong(tried(three_clients, 3))


def test_two_displays_of_one_user_know_nothing_of_each_other() -> None:
    assert_nothing_wrong(tried(keys.cross_displays, 2))


def test_a_paste_arrives_or_is_refused_and_the_clipboard_comes_back() -> None:
    assert_nothing_wrong(tried(paste.break_pastes, 5))


def test_a_command_ended_in_the_middle_of_a_paste_gives_the_clipboard_back() -> None:
    assert_nothing_wrong(tried(paste.end_pastes, 2))


def test_a_program_that_fails_is_an_error_and_never_a_success() -> None:
    assert_nothing_wrong(tried(faults.break_programs, 8))


def test_a_display_that_goes_is_said_and_the_server_lives() -> None:
    assert_nothing_wrong(tried(faults.end_displays, 1))


def test_folders_that_take_nothing_are_said() -> None:
    assert_nothing_wrong(tried(faults.fill_disks, 4))


@pytest.mark.parametrize("driver", [wire.fuzz_lines, wire.fuzz_arguments, wire.fuzz_argv])
def test_nothing_that_comes_in_raises_or_kills(driver: Driver) -> None:
    tally = tried(driver, 15)
    assert tally.wrong == 0, table([tally])


def test_a_model_that_lies_is_an_error_or_a_clean_text() -> None:
    assert_nothing_wrong(tried(wire.lie_to_models, 10))


def test_a_models_reply_is_an_action_or_refused() -> None:
    assert_nothing_wrong(tried(wire.read_lies, 400))


def test_undisturbed_acts_are_delivered_and_reported_so() -> None:
    tally = tried(calm.stay_calm, 12)
    assert tally.acted == tally.trials, table([tally])
