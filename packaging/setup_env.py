"""The program's own environment: .venv in the checkout, with pinned packages, made once.

Standard library only, and readable by Python 3.9, so that an old Python gets a sentence instead
of a traceback. The check that everything is in place opens four small files and starts nothing.
"""

import contextlib
import os
import sys

from setup_messages import SetupError, say

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
CONSTRAINTS = os.path.join(ROOT, "packaging", "constraints.txt")
OLDEST, NEWEST = (3, 11), (3, 14)

_STAMP = os.path.join(VENV, "decoder-explorer.stamp")
_UNFINISHED = os.path.join(VENV, "decoder-explorer.unfinished")
_WINDOWS = os.name == "nt"

# Measured on Linux with the CPU build of torch.
_VENV_MB, _DOWNLOAD_MB = 1560, 375
_MODEL_MB, _MODEL_DOWNLOAD_MB = 640, 93


def venv_python():
    return os.path.join(VENV, *(("Scripts", "python.exe") if _WINDOWS else ("bin", "python")))


def environment(dev=False):
    """The path of .venv's Python, after making or mending .venv where that is needed."""
    if not is_current(dev):
        with only_one(os.path.join(ROOT, ".venv.lock"), "Another set-up is under way; waiting..."):
            if not is_current(dev):
                _build(dev)
    return venv_python()


def is_current(dev=False):
    """Whether .venv was finished from these very pins, for this place and this Python."""
    try:
        with open(_STAMP, encoding="utf-8") as stamp:
            fingerprint, extent = stamp.read().split()
        return fingerprint == _fingerprint() and extent in (("dev",) if dev else ("run", "dev"))
    except (OSError, ValueError):
        return False


def use_supported_python():
    """Goes on only under a Python that the pins were made for: this one, or one from PATH."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return
    found = _supported_python()
    if found is None:
        raise SetupError(
            f"Decoder Explorer needs Python {_dotted(OLDEST)} to {_dotted(NEWEST)}, and this is "
            f"Python {_dotted(sys.version_info)}; install one of those (python.org, or your "
            "system's packages) and start this script with it."
        )
    replace_process(found + sys.argv)


def replace_process(command, env=None):
    """Becomes `command`; where a system cannot do that, runs it and leaves with its code."""
    sys.stdout.flush()
    env = dict(os.environ) if env is None else env
    if not _WINDOWS:
        os.execvpe(command[0], command, env)
    import subprocess

    sys.exit(subprocess.call(command, env=env))


@contextlib.contextmanager
def only_one(path, waiting):
    """Lets one process at a time into the block; a second one says `waiting` and waits."""
    try:
        handle = open(path, "a+", encoding="utf-8")  # noqa: SIM115 - closed below
    except OSError as error:
        raise SetupError(f"{os.path.dirname(path)} cannot be written: {error.strerror}.") from error
    with handle:
        if not _try_lock(handle):
            say(waiting)
            _wait_for_lock(handle)
        yield


def _fingerprint():
    import hashlib

    digest = hashlib.sha256()
    for path in (CONSTRAINTS, os.path.join(ROOT, "pyproject.toml"), _venv_file("pyvenv.cfg")):
        with open(path, "rb") as file:
            digest.update(file.read() + b"\0")
    python = venv_python()
    if not os.path.exists(python):
        raise FileNotFoundError(python)
    digest.update((ROOT + "\0" + os.path.realpath(python)).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def child_env(**more):
    """The environment for the program and its tests.

    What Python compiles is kept, or each process would compile all that it imports once more.
    """
    env = dict(os.environ, **more)
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return env


def _dotted(version):
    return f"{version[0]}.{version[1]}"


def _venv_file(name):
    return os.path.join(VENV, name)


def _supported_python():
    """A command that starts a supported Python, or None; a shim that cannot start is no help."""
    import subprocess

    for minor in range(OLDEST[1], NEWEST[1] + 1):
        command = ["py", f"-3.{minor}"] if _WINDOWS else [f"python3.{minor}"]
        test = f"import sys; sys.exit(sys.version_info[:2] != (3, {minor}))"
        try:
            done = subprocess.run([*command, "-c", test], capture_output=True, check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return command
    return None


def _build(dev):
    use_supported_python()
    _tell_needs()
    _make_venv()
    with contextlib.suppress(FileNotFoundError):
        os.remove(_STAMP)
    if os.path.exists(_UNFINISHED):
        say("An earlier set-up was interrupted; going on from there.")
        _drop_half_installed()
    _write(_UNFINISHED, "")
    _install(dev)
    extent = "dev" if dev else "run"
    _write(_STAMP, f"{_fingerprint()} {extent}\n")
    os.remove(_UNFINISHED)


def _tell_needs():
    import shutil

    if os.path.exists(venv_python()):
        say(f"Bringing {VENV} up to date.")
        return
    say(
        f"First start: this downloads about {_DOWNLOAD_MB + _MODEL_DOWNLOAD_MB} MB and takes about "
        f"{(_VENV_MB + _MODEL_MB) / 1000:.1f} GB of disk: {_VENV_MB / 1000:.1f} GB of Python "
        f"packages in {VENV} and {_MODEL_MB / 1000:.1f} GB for the model SmolLM2 in your data "
        f"folder ({data_folder()}). README.md says how to remove all of it."
    )
    free_mb = shutil.disk_usage(ROOT).free / 1e6
    if free_mb < _VENV_MB:
        raise SetupError(
            f"Only {free_mb:.0f} MB are free in {ROOT}, and {_VENV_MB} MB are needed; free some "
            "space and start again."
        )


def data_folder():
    return str(places().data_folder())


def places():
    """explorer/places.py, which knows the data folder."""
    return part_of_program("places")


def part_of_program(name):
    """A module of explorer/ that needs nothing but the library."""
    import importlib

    if ROOT not in sys.path:
        sys.path.insert(0, ROOT)
    return importlib.import_module("explorer." + name)


def _make_venv():
    if _runs(venv_python(), "-m", "pip", "--version"):
        return
    _need_venv_module()
    say(f"Making {VENV} with Python {_dotted(sys.version_info)}.")
    if not _runs(sys.executable, "-m", "venv", "--clear", VENV, quiet=False):
        raise SetupError(f"Python could not make {VENV}; the lines above say why.")


def _need_venv_module():
    import debian_packages

    if _runs(sys.executable, "-c", "import ensurepip, venv"):
        return
    package = f"python{_dotted(sys.version_info)}-venv"
    if not debian_packages.install([package], "Python's venv module is missing"):
        raise SetupError(
            "This Python lacks its venv module; install it (on Debian and Ubuntu: "
            f"apt install {package}) and start again."
        )


def _install(dev):
    # The build tool first, and no build isolation: it is pinned like everything else.
    _need_pip("hatchling")
    _install_torch()
    _need_pip("--no-build-isolation", "-e", ROOT + ("[dev]" if dev else ""))


def _need_pip(*arguments):
    if not pip("install", "-c", CONSTRAINTS, *arguments):
        raise SetupError(
            "The packages could not be installed; the lines above say why. If the network was "
            "away, start again when it is back: what is there already is kept."
        )


def _install_torch():
    """On Linux plain torch brings gigabytes of CUDA: take the CPU build where it will do."""
    wanted = pinned("torch")
    if not sys.platform.startswith("linux") or _installed("torch").split("+")[0] == wanted:
        return
    cpu = f"torch=={wanted}+cpu"
    visible = _pip_finds(cpu)
    if not visible and has_nvidia():
        say("An NVIDIA GPU is here: torch with CUDA is about 3 GB to download, 7 GB on disk.")
        return
    index = [] if visible else ["--extra-index-url", "https://download.pytorch.org/whl/cpu"]
    if not pip("install", "-c", CONSTRAINTS, cpu, *index):
        say("torch's CPU build cannot be had here; the usual one is up to 3 GB to download.")


def has_nvidia():
    import shutil

    return os.path.exists("/proc/driver/nvidia/version") or shutil.which("nvidia-smi") is not None


def pinned(name):
    """The version of a package in constraints.txt."""
    with open(CONSTRAINTS, encoding="utf-8") as lines:
        for line in lines:
            package, _, version = line.split("#")[0].strip().partition("==")
            if package.lower() == name.lower():
                return version
    raise KeyError(name)


def pip(*arguments):
    """Runs .venv's pip in the open, and says whether it went well."""
    if arguments[0] == "install":
        # Python compiles a module when it is first imported, and most of these never are.
        arguments += ("--no-compile",)
    return _runs(venv_python(), "-m", "pip", *arguments, quiet=False)


def _pip_finds(requirement):
    return _runs(
        venv_python(), "-m", "pip", "install", "--dry-run", "--no-deps", "--quiet", requirement
    )


def _installed(name):
    for found in _distributions():
        if found.metadata["Name"].lower() == name:
            return found.version
    return ""


def _distributions():
    import importlib.metadata

    return list(importlib.metadata.distributions(path=_site_packages()))


def _site_packages():
    import glob

    pattern = ("Lib",) if _WINDOWS else ("lib", "python3*")
    return glob.glob(os.path.join(VENV, *pattern, "site-packages"))


def _drop_half_installed():
    """Forgets packages whose files are not all there, so that pip installs them again."""
    import shutil

    for found in _distributions():
        if not _is_whole(found):
            shutil.rmtree(str(found._path), ignore_errors=True)
    for folder in _site_packages():
        for name in os.listdir(folder):
            if name.startswith("~"):
                shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


def _is_whole(found):
    if found.files is None:
        return False
    for file in found.files:
        try:
            size = os.stat(str(file.locate())).st_size
        except OSError:
            if not file.name.endswith(".pyc"):
                return False
        else:
            if file.size is not None and file.size != size:
                return False
    return True


def _runs(*command, quiet=True):
    import subprocess

    env = dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_USER="0", PIP_NO_INPUT="1")
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PYTHONHOME", "PYTHONPATH"):
        env.pop(name, None)
    sink = subprocess.DEVNULL if quiet else None
    try:
        return subprocess.call(command, env=env, stdout=sink, stderr=sink) == 0
    except OSError:
        return False


def _write(path, text):
    """Written whole or not at all."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def _try_lock(handle):
    try:
        if _WINDOWS:
            import msvcrt

            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _wait_for_lock(handle):
    import time

    while not _try_lock(handle):
        time.sleep(0.2)
