"""Eyes and hands for AI agents on a desktop, by the programs it has already.

The map. A room imports only rooms above it; tests/test_house.py sees to that.

words             errors model version; prompts agent_prompts: every text that a model is sent; signatures: a function's
                  parameters, read for both front doors
outside, a door   settings (environment), cancel, log, programs and proc (the only subprocess), web (the only urllib),
each              image_files, private_files, sources (native/*), keys
the desktop       desktop: what a platform must do.  macos: osascript, swift_helper, mac_host, mac_keys.
                  x11: x11_tree, x11_keyboard, x11_ocr.  platforms: which of the two this machine is
the jobs          matching, policy, turns (one at a time), records (what a photograph's pixels mean), capture_plan, capture,
                  automation, imaging, listing, app_window, text_finding, keynote and keynote_memory, peekaboo_cli;
                  vision, with providers, provider_errors, model_choice, model_pictures; gmail and gmail_oauth;
                  status and probes; answers: results as MCP messages
the agents        function_call, keynote_agent; actions, agent_decision, agent_target, agent_loop, agent_run, run_report,
                  vision_agent; mcp_client: how they reach our own server
the front doors   tools (desktop_tools, capture_tools) and server; commands (look_commands, machine_commands) and cli;
                  reference: both, as Markdown; client_config: what starts the server

One way down, one way back: arguments go from a front door through a tool or command to a job to the Desktop; a frozen Result
comes back, or one PeekabooError sideways.
"""

from .core.version import VERSION as __version__  # noqa: F401
