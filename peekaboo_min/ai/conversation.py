"""A conversation with a model through its vendor's own computer-use tool."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from ..core.errors import ErrorCode, PeekabooError
from ..core.settings import without_secrets
from ..core.text import clean_text
from .grid import PIXELS
from .providers import VENDORS, Question, Reply, Vendor

_NOT_EXECUTED = "Not executed: only the first action of a turn is. The screenshot shows the state after it."
# Anthropic's own sentence for what follows a failed action
_NOT_AFTER_FAILURE = "Not executed: an earlier computer action in this turn failed."
LONGEST_TEXT = 300


@dataclass(frozen=True)
class Call:
    """One call of an answer, which must get a result. Its acts keep the vendor's own names."""

    call_id: str
    name: str
    acts: list[dict[str, Any]]
    checks: list[dict[str, Any]]
    """What the vendor wants a person to consent to."""


def unusable(reason: str) -> PeekabooError:
    return PeekabooError(ErrorCode.AI_PROVIDER_ERROR, reason)


class Conversation:
    """A run's questions and answers, as one vendor's API has them; each call gets its result.

    One action a turn is carried out. Its result is the next question, with its images; the other calls of
    the turn are answered as not executed.
    """

    unit = PIXELS
    """What the tool counts in, over the last image."""
    provider: str
    ask_path = ""

    def __init__(self, model: str) -> None:
        self.model = model
        self.headers: dict[str, str] = {}
        self.is_refused = False
        """The last action cannot be done: the next question says why, without an image."""
        self._messages: list[dict[str, Any]] = []
        self._calls: list[Call] = []
        self._acted = 0  # the number of the call whose action is carried out

    @property
    def vendor(self) -> Vendor:
        """The vendor, asked through its tool."""
        usual = VENDORS[self.provider]
        return replace(
            usual,
            ask_path=self.ask_path or usual.ask_path,
            headers_for=lambda key: {**usual.headers_for(key), **self.headers},
            body=self.body,
            read=self.read,
        )

    @property
    def safety_check(self) -> str:
        """What a person has to consent to before the next question, which acknowledges it; may be empty."""
        checks = [check for call in self._calls for check in call.checks]
        texts = [
            str(check.get("message") or check.get("explanation") or "no reason given") for check in checks
        ]
        return clean_text(without_secrets("; ".join(texts)), LONGEST_TEXT)

    def body(self, question: Question) -> dict[str, Any]:
        """The request for a question. It becomes a part of the conversation."""
        raise NotImplementedError

    def read(self, answer: Any) -> Reply:
        """An answer, as JSON: its text, and its calls in the vendor's names. Raises as Vendor.read does."""
        reply = self._read(answer)
        if reply.refusal or reply.cut_short:
            return reply
        self._calls, self._acted, self.is_refused = self._calls_of(answer), 0, False
        calls = [{"id": call.call_id, "acts": call.acts, "checks": call.checks} for call in self._calls]
        is_empty = not calls and not reply.text.strip()
        return replace(reply, text="" if is_empty else json.dumps({"text": reply.text, "calls": calls}))

    def action_in(self, reply: str) -> str:
        """The action to carry out, of a reply from `read`, as JSON that ai.dialects reads.

        Each question shows a screenshot, so that asking for one is no action. An answer without a call is
        the end, unless it asks something or says UNSURE. Raises AI_PROVIDER_ERROR.
        """
        found = json.loads(reply)
        why = found["text"].strip()
        acts = [(number, act) for number, call in enumerate(found["calls"]) for act in call["acts"]]
        if not found["calls"]:
            is_unsure = why.upper().startswith("UNSURE") or why.endswith("?")
            return json.dumps({"action": "noop" if is_unsure else "done", "why": why[:LONGEST_TEXT]})
        if not acts:
            raise unusable("the call has no action")
        self._acted, act = next((each for each in acts if not is_screenshot(each[1])), acts[0])
        try:
            found = {"action": "wait", "seconds": 0} if is_screenshot(act) else self._translated(act)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise unusable(f"the arguments of {str(_name_of(act))[:40]} cannot be read") from None
        return json.dumps({"why": why[:LONGEST_TEXT], **found})

    def _read(self, answer: Any) -> Reply:
        return VENDORS[self.provider].read(answer)

    def _calls_of(self, answer: Any) -> list[Call]:
        raise NotImplementedError

    def _translated(self, act: dict[str, Any]) -> dict[str, Any]:
        """The action in names that ai.dialects reads. Raises AI_PROVIDER_ERROR, or as Vendor.read does."""
        raise NotImplementedError

    def _problem_of(self, number: int) -> str:
        """Why a call of the turn was not executed; empty for the one that was, and for screenshots."""
        is_shown = number == self._acted or all(map(is_screenshot, self._calls[number].acts))
        return "" if is_shown else self._problem_of_others

    @property
    def _problem_of_others(self) -> str:
        return _NOT_AFTER_FAILURE if self.is_refused else _NOT_EXECUTED


def _name_of(act: dict[str, Any]) -> Any:
    return act.get("action") or act.get("type")


def is_screenshot(act: dict[str, Any]) -> bool:
    return _name_of(act) in ("screenshot", "take_screenshot")
