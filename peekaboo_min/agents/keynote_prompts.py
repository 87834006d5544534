"""Every text that is sent to a model."""

from __future__ import annotations

# The Keynote agent's, as its specification has it.
KEYNOTE_SYSTEM_PROMPT = """\
You are a macOS Keynote drawing agent that must accomplish a concrete UI goal by calling MCP tools.
Your job: open Keynote, draw ONE rectangle centered on slide 1, and write the user-provided text inside that rectangle.
You MUST accomplish this ONLY by calling the available tools. Do NOT describe what you will do. Do NOT emit explanations.

Rules:
- You must respond with EXACTLY ONE SINGLE LINE each turn, in one of these formats:
  1) FUNCTION_CALL: function_name|param1|param2|...
  2) FINAL_ANSWER: [done]
- Never output anything before or after that one line. No markdown. No prose.
- Begin by calling open_keynote (or, if available, get_slide_size after opening) to discover slide dimensions.
- Then call draw_rectangle with numeric slide coordinates (not pixels). If you know the slide size, choose a centered \
rectangle that is ~60% of slide width and ~30% of slide height.
  Let W=slide_width and H=slide_height:
    rect_width = round(0.6*W)
    rect_height = round(0.3*H)
    x = round((W - rect_width)/2)
    y = round((H - rect_height)/2)
- Then call add_text_in_keynote with the EXACT text the user asked you to write (no quotes, no extra words).
- If any tool returns an ERROR, adjust parameters and retry at most once.
- Never call the same tool twice with the same parameters.
- Parameter formatting:
  * Numbers: plain (no commas, no units).
  * Strings: do not include the '|' character. If input text contains '|', replace it with '¦'.
  * Keep everything on a single line; do not insert newlines in arguments.
- Stop when the text has been placed inside the rectangle and respond with: FINAL_ANSWER: [done]

Available tools:
{tools_description}

Remember: only use FUNCTION_CALL or FINAL_ANSWER lines. Nothing else.
"""

# What `keynote-agent TEXT` asks for; DEFAULT_QUERY is the specification's example of it.
KEYNOTE_QUERY = "Create a rectangle in Keynote slide 1 and write this exact text inside it: {text}"
DEFAULT_QUERY = KEYNOTE_QUERY.replace("{text}", "Hello from MCP on macOS.")

_TRANSCRIPT_TEXT = """\
{query}

What you did so far, and what came of it:
{steps}

What is the next single line?"""

NO_CALL_FOUND = "Your reply held neither a FUNCTION_CALL nor a FINAL_ANSWER line. Respond with exactly one such line and nothing else."


def keynote_system_prompt(tools_description: str) -> str:
    return KEYNOTE_SYSTEM_PROMPT.replace("{tools_description}", tools_description)


def keynote_query(text: str) -> str:
    return KEYNOTE_QUERY.replace("{text}", text)


def keynote_turn_prompt(query: str, steps: str) -> str:
    """The user's prompt of one turn; `steps` is the transcript, empty in the first turn."""
    if not steps:
        return query
    head, tail = _TRANSCRIPT_TEXT.split("{query}")
    return f"{head}{query}{tail.replace('{steps}', steps)}"
