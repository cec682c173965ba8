"""Opens Decoder Explorer; the first start sets up everything it needs.

    python3 packaging/run.py               opens SmolLM2-135M-Instruct
    python3 packaging/run.py MODEL         opens a model folder, a .gguf file or a bundled model
    python3 packaging/run.py FILE.dxt      opens a saved session
    python3 packaging/run.py COMMAND ...     any other command of the program, such as trace
    python3 packaging/run.py --prepare     sets up everything and opens nothing
    python3 packaging/run.py --install-desktop     puts the program in your menu (Linux)
    python3 packaging/run.py --remove-desktop      takes it out again

Options are handed on to the program. Without a display it makes a trace and pictures of it instead.
"""

import os
import sys

import setup_env
from setup_messages import SetupError, say

PARSER = os.path.join(setup_env.ROOT, "explorer", "cli", "arguments.py")
PROMPT = "The capital of France is"
STEPS = 8


def main(arguments):
    if arguments and arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    try:
        return start(arguments)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next start goes on from here.", file=sys.stderr)
        return 130


def start(arguments):
    import desktop_entry
    import system_parts

    if arguments == ["--remove-desktop"]:
        return desktop_entry.remove() or 0
    first = not setup_env.is_current()
    python = setup_env.environment()
    if arguments == ["--install-desktop"]:
        return desktop_entry.install(python) or 0
    if arguments and arguments[0] in commands():
        if "smollm2" in arguments:
            wanted_model()
        return run_program(python, arguments)
    display = system_parts.display_works()
    if first and display and desktop_entry.possible():
        say(desktop_entry.OFFER)
    system_parts.need_qt_parts(display)
    if arguments == ["--prepare"]:
        say(f"Everything is set up for {wanted_model()}.")
        return 0
    if not arguments or arguments[0].startswith("-"):
        arguments = [wanted_model(), *arguments]
    elif arguments[0] == "smollm2":
        arguments = [wanted_model(), *arguments[1:]]
    if display:
        return run_program(python, arguments)
    return run_without_display(python, arguments)


def commands():
    """The names of the program's commands, read from its parser, which only .venv can import."""
    import re

    with open(PARSER, encoding="utf-8") as source:
        return re.findall(r'\bCommand\(\s*"([a-z-]+)"', source.read())


def wanted_model():
    """smollm2, fetched if need be; the small model that comes with the program if it cannot be."""
    import fetch_smollm2

    try:
        fetch_smollm2.fetch()
    except SetupError as error:
        say(f"{error} Until then there is copycat, the small model that comes with the program.")
        return "copycat"
    return "smollm2"


def run_program(python, arguments):
    """Becomes the program. Safe path: no file in the user's folder may pass for a module."""
    setup_env.replace_process([python, "-m", "explorer", *arguments], program_env())


def run_without_display(python, arguments):
    """What the window would do, offscreen: a trace of the model, then pictures of that trace."""
    import subprocess

    say("No display was found, so no window can open; doing the main job offscreen.")
    folder = output_folder()
    opened, options = arguments[0], arguments[1:]
    trace = opened if opened.endswith(".dxt") else os.path.join(folder, "trace.dxt")
    if trace != opened:
        prompt = options[options.index("--prompt") + 1] if "--prompt" in options[:-1] else PROMPT
        command = ["trace", opened, "--prompt", prompt, "--steps", str(STEPS), "--out", trace]
        code = subprocess.call([python, "-m", "explorer", *command], env=program_env())
        if code:
            return code
    earlier = picture_times(folder)
    command = [python, "-m", "explorer.app", "--pictures", folder, trace]
    env = program_env(QT_QPA_PLATFORM="offscreen")
    # Its own list of pictures is left out: they are named below, with the trace.
    code = subprocess.call(command, env=env, stdout=subprocess.DEVNULL)
    if code == 0:
        tell_output(folder, trace, earlier)
    return code


def program_env(**more):
    return setup_env.child_env(PYTHONSAFEPATH="1", **more)


def output_folder():
    """./explorer-output, or the same in the data folder where the current one is read-only."""
    import tempfile

    for parent in (os.getcwd(), setup_env.data_folder()):
        folder = os.path.join(parent, "explorer-output")
        try:
            os.makedirs(folder, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    raise SetupError(f"Nothing can be written, neither here nor in {setup_env.data_folder()}.")


def picture_times(folder):
    """When each picture in the folder was written."""
    names = [name for name in os.listdir(folder) if name.endswith(".png")]
    return {name: os.stat(os.path.join(folder, name)).st_mtime_ns for name in names}


def tell_output(folder, trace, earlier):
    now = picture_times(folder)
    say(f"The trace: {trace}")
    for name in sorted(now):
        if now[name] != earlier.get(name):
            say(f"A picture: {os.path.join(folder, name)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
