"""Eyes and hands for AI agents on a desktop, with the programs it has.

The map, lowest layer first. A module imports only from its own folder and from the folders before it in this
list; tests/test_architecture.py enforces that.

core          errors models settings log call text: imports nothing else of ours
system        ending process (the only subprocess) programs web (the only urllib.request) files
              image_files saved_images bitmaps
desktop       base: the contract of a platform; select keys matching images readings
              macos: backend osascript input swift_helper, and the sources that they run
              x11: backend connection windows xdotool record keyboard clipboard
                   elements elements_atspi ocr opening
ai            client providers grid: ask a model
automation    policy coordinates capture image act steps listing find labels wait opening: the jobs
integrations  keynote gmail peekaboo_cli
agents        mcp_client actions planner target run report vision_agent keynote_agent
tools         table (a row for each tool and command); list_tools look_tools act_tools capture_tools
              status: the functions of the tools
frontends     arguments commands documents own_desktop; server serve cli

Data goes one way down and one way back: arguments from a front end through a tool to a job and to the
Desktop; a frozen Result comes back, or one PeekabooError. A click, for example:

server.call_tool, or cli.run_command  read the arguments; look the tool up in tools.table
tools.act_tools.click                 make an Act of them
automation.act.perform                policy, lock, pixel to screen point, focus, audit line
Desktop.act                           in macos or x11: check once more, press, find out who received it
"""

__version__ = "0.1.0"
