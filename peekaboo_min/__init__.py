"""Eyes and hands for AI agents on a desktop, by the programs it has already.

The map, from the ground up. A module imports only from its own wing and from those before it in this list;
tests/test_architecture.py enforces that.

core          errors models settings log cancellation text: imports nothing of ours
system        ending process (the only subprocess) programs, web (the only urllib.request), files images
desktop       base: what a platform must do; select: which of the two this machine is; keys, matching
              macos: backend input osascript swift_helper, and the sources that they run
              x11: backend connection windows elements elements_atspi opening presses pointer keyboard
                   clipboard ocr
ai            client providers images grid: asking a model
automation    policy coordinates capture image listing act labels find wait opening: the jobs
integrations  keynote gmail peekaboo_cli
agents        mcp_client; keynote_agent; vision_agent target planner actions model_check run report
frontends     arguments results tools; capture_tools desktop_tools doctor; server cli

Data goes one way down and one way back: arguments from a front end through a tool or command to a job and to
the Desktop; a frozen Result comes back, or one PeekabooError sideways.
"""

__version__ = "0.1.0"
