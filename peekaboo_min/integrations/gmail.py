"""send_email: one mail through Gmail's API."""

from __future__ import annotations

import base64
import re
import time
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
_ADDRESS = re.compile(
    r"(?=[^@]{1,64}@.{1,189}$)[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])"
)
# Also an encoded word (RFC 2047): Python would decode it, line breaks included, before writing it.
_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]|=\?.*\?=")
_LONGEST_SUBJECT = 900


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
    from email.message import EmailMessage
    from email.policy import SMTP

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
    deadline = time.monotonic() + _SEND_S
    is_renewed = not token.is_fresh
    if is_renewed:
        token = renew_token(token)
    while True:
        try:
            answer = _post(raw, token, deadline)
            break
        except WebError as e:
            if e.status != 401 or is_renewed:
                raise _send_error(e) from None
            token, is_renewed = renew_token(token), True
    if not isinstance(answer, dict) or not isinstance(answer.get("id"), str):
        raise google_error("Gmail's answer has no id", "check the sent mails before you try again")
    return clean_text(answer["id"])


def _post(raw: bytes, token: GmailToken, deadline: float) -> Any:
    url = settings().gmail_base_url.rstrip("/") + "/gmail/v1/users/me/messages/send"
    body = {"raw": base64.urlsafe_b64encode(raw).decode()}
    headers = {"Authorization": f"Bearer {token.access_token}"}
    return ask_json(url, headers=headers, body=body, timeout_s=max(1.0, deadline - time.monotonic()))


def _send_error(error: WebError) -> PeekabooError:
    """What Gmail's refusal means. Where the mail may have been sent nevertheless, the hint says so."""
    if error.kind in ("timeout", "closed", "malformed", "too_large"):
        message = f"it is unknown whether the mail was sent: {error.message}"
        return google_error(message, "check the sent mails before you try again")
    if error.kind != "status":
        return google_error(f"Gmail cannot be reached: {error.message}", "check the network")
    body = error.body if isinstance(error.body, dict) else {}
    found = body.get("error")
    message = clean_text(str(found.get("message") or "")) if isinstance(found, dict) else ""
    text = message or f"status {error.status}"
    if error.status == 401:
        return google_error(f"Gmail rejected the token: {text}", "run peekaboo-min gmail-login again")
    if error.status == 403:
        hint = (
            "run peekaboo-min gmail-login again, and check that the Gmail API is enabled in Google's console"
        )
        return google_error(f"Gmail denied permission: {text}", hint)
    if error.status == 429:
        wait = f"wait {error.retry_after_s:.0f} seconds" if error.retry_after_s else "wait a while"
        return google_error(f"Gmail refused: too many requests: {text}", f"{wait}, then send it again")
    if error.status >= 500:
        message = f"Gmail failed with a server error ({error.status}): {text}"
        return google_error(message, "check the sent mails, then try again later")
    return google_error(f"Gmail refused the mail: {text}", "check the address, subject and text")
