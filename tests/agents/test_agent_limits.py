"""When the vision agent ends before it acts: in a forbidden app, and where the model is not sure enough."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest
from samples import app, error_of

from peekaboo_min.agents.actions import Action
from peekaboo_min.agents.run import AgentRun, AgentStep
from peekaboo_min.agents.vision_agent import AgentLoop
from peekaboo_min.ai.client import choose_named_model
from peekaboo_min.core.errors import ErrorCode


@pytest.fixture
def loop(environment: Callable[..., None]) -> Any:
    """One that looks at nothing, and asks no model."""
    environment(OPENAI_API_KEY="k", PEEKABOO_DENY_APPS="com.example.notes")
    model, server = choose_named_model("openai/gpt-5.4-mini"), Any
    return AgentLoop(AgentRun("Sign it", model.name, confidence=0.5), model, server)  # type: ignore[arg-type]


def test_agent_sees_nothing_of_a_forbidden_app(loop: Any, tmp_path: Path) -> None:
    loop._target = SimpleNamespace(choose=lambda _: app("Notes", 60, "com.example.Notes"))
    error = error_of(loop.work, str(tmp_path / "run"))
    assert (error.code, (tmp_path / "run").exists()) == (ErrorCode.POLICY_DENIED, False)


def test_agent_goes_on_where_the_model_is_as_sure_as_asked(loop: Any) -> None:
    loop._target = SimpleNamespace(focus=lambda: None, observe=lambda _: None)
    loop._planner = SimpleNamespace(decide=lambda step: Action("done", confidence=step.number / 2))
    assert loop._take(AgentStep(1)) == "done"
    assert error_of(loop._take, AgentStep(0)).code is ErrorCode.AI_PROVIDER_ERROR
