"""send_email: one mail through Gmail's API."""

from __future__ import annotations

import base64
import re
from email.message import EmailMessage
from email.policy import SMTP
from typing import Annotated, Any, Optional

from ..automation.policy import check_may_act, write_audit_line
from ..core.errors import PeekabooError, invalid
from ..core.models import Result
from ..core.settings import settings
from ..core.text import clean_text
from ..system.web import WebError, ask_json
from .gmail_oauth import GmailToken, google_error, read_token, renew_token

_SEND_S = 40.0
# One plain address: ASCII, no quotes, no route. Gmail itself refuses what is wrong beyond that.
_ADDRESS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@([A-Za-z0-9-]{1,63}\.)+[A-Za-z0-9-]{2,63}")
# Also an encoded word (RFC 2047): Python would decode it, line breaks included, before writing it.
_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]|=\?.*\?=")
_LONGEST_SUBJECT = 900
# Google's status -> what to do then; any other says that the mail itself is wrong.
_HINTS = {
    401: "run peekaboo-min gmail-login again",
    403: "run peekaboo-min gmail-login again, and check that the Gmail API is enabled in Google's console",
    429: "wait a while, then send it again",
    500: "check the sent mails, then try again later",
    503: "check the sent mails, then try again later",
}


def send_email(
    to: Annotated[str, "one address, such as ann@example.org"],
    subject: Annotated[str, "the subject: one line of any Unicode, at most 900 characters"],
    body: Annotated[str, "the mail as plain text, any Unicode"],
    body_html: Annotated[
        Optional[str], "the same as HTML, for readers that show it; default: plain text only"
    ] = None,
) -> Result:
    """Sends one e-mail from the Gmail account that gmail-login was run for. It is sent at once and cannot be
    recalled.

    Example: peekaboo-min send-email ann@example.org "Hello" "How are you?"
    """
    # Raises INVALID_ARGUMENT, POLICY_DENIED, FILE_IO_ERROR (not logged in), PROGRAM_FAILED (Gmail refuses)
    address = _checked_address(to)
    raw = _mail(address, _checked_subject(subject), body, body_html)
    check_may_act("send_email")
    token = read_token()
    write_audit_line("send_email", {"to": address})
    message_id = _send(raw, token)
    data = {"to": address, "id": message_id}
    return Result(f"EMAIL_SENT: to={address}, id={message_id}", data, is_text_only=True)


def _checked_address(to: str) -> str:
    address = to.strip(" ")
    if not _ADDRESS.fullmatch(address):
        message = f"{clean_text(to, 80)!r} is not an e-mail address"
        raise invalid(message, "give one address, such as ann@example.org")
    return address


def _checked_subject(subject: str) -> str:
    if len(subject) > _LONGEST_SUBJECT:  # first: searching a long one takes its length squared
        raise invalid(f"the subject has {len(subject)} characters", f"write at most {_LONGEST_SUBJECT}")
    if _UNSENDABLE.search(subject):
        message = "a subject cannot contain line breaks, control characters or encoded words"
        raise invalid(message, "write it as one line of plain Unicode")
    return subject


def _mail(to: str, subject: str, body: str, body_html: Optional[str]) -> bytes:
    mail = EmailMessage(policy=SMTP.clone(cte_type="7bit"))
    try:
        mail["To"] = to
        mail["Subject"] = subject
        mail.set_content(body)
        if body_html:
            mail.add_alternative(body_html, subtype="html")
        return mail.as_bytes()
    except UnicodeEncodeError:
        message = "the mail contains a lone surrogate, which is only half a character"
        raise invalid(message, "send complete Unicode characters") from None


def _send(raw: bytes, token: GmailToken) -> str:
    """Gmail's id of the mail. A rejected token is renewed, once.

    Nothing else is retried: the mail might be sent twice.
    """
    if not token.is_fresh:
        token = renew_token(token)
    try:
        try:
            answer = _post(raw, token)
        except WebError as e:
            if e.status != 401:
                raise
            answer = _post(raw, renew_token(token))
        return clean_text(answer["id"])
    except WebError as e:
        raise _send_error(e) from None
    except (KeyError, TypeError):
        raise google_error("Gmail's answer has no id", "check the sent mails before you try again") from None


def _post(raw: bytes, token: GmailToken) -> Any:
    url = settings().gmail_base_url.rstrip("/") + "/gmail/v1/users/me/messages/send"
    body = {"raw": base64.urlsafe_b64encode(raw).decode()}
    headers = {"Authorization": f"Bearer {token.access_token}"}
    return ask_json(url, headers=headers, body=body, timeout_s=_SEND_S)


def _send_error(error: WebError) -> PeekabooError:
    """What Gmail's refusal means. Where the mail may have been sent nevertheless, the hint says so."""
    if error.kind == "status":
        answer = error.body.get("error") if isinstance(error.body, dict) else None
        reason = clean_text(str(answer.get("message"))) if isinstance(answer, dict) else error.message
        hint = _HINTS.get(error.status, "check the address, subject and text")
        return google_error(f"Gmail refused the mail with status {error.status}: {reason}", hint)
    if error.kind in ("timeout", "closed", "malformed"):
        message = f"it is unknown whether the mail was sent: {error.message}"
        return google_error(message, "check the sent mails before you try again")
    return google_error(f"Gmail cannot be reached: {error.message}", "check the network")
