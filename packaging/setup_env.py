"""The program's own environment: .venv in the checkout, with pinned packages, made once.

Standard library only, and readable by Python 3.9, so that an old Python gets a sentence instead
of a traceback. The check that everything is in place opens four small files and starts nothing.
"""

import contextlib
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
CONSTRAINTS = os.path.join(ROOT, "packaging", "constraints.txt")
OLDEST, NEWEST = (3, 11), (3, 14)

_STAMP = os.path.join(VENV, "decoder-explorer.stamp")
_UNFINISHED = os.path.join(VENV, "decoder-explorer.unfinished")
_WINDOWS = os.name == "nt"

# Measured on Linux with the CPU build of torch.
_VENV_MB, _DOWNLOAD_MB = 1500, 450
_MODEL_MB, _MODEL_DOWNLOAD_MB = 640, 93


class SetupError(Exception):
    """Something the user has to know or do, in one sentence."""


def say(text):
    print(text, flush=True)


def venv_python():
    return os.path.join(VENV, *(("Scripts", "python.exe") if _WINDOWS else ("bin", "python")))


def environment(dev=False):
    """The path of .venv's Python, after making or mending .venv where that is needed."""
    if not is_current(dev):
        with only_one(os.path.join(ROOT, ".venv.lock"), "Another set-up is under way; waiting…"):
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
            "Decoder Explorer needs Python %d.%d to %d.%d, and this is Python %d.%d; install one "
            "of those (python.org, or your system's packages) and start this script with it."
            % (OLDEST + NEWEST + sys.version_info[:2])
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
    with open(path, "a+", encoding="utf-8") as handle:
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


def _venv_file(name):
    return os.path.join(VENV, name)


def _supported_python():
    """A command that starts a supported Python, or None; a shim that cannot start is no help."""
    import subprocess

    versions = ["%d.%d" % (3, minor) for minor in range(OLDEST[1], NEWEST[1] + 1)]
    for version in versions:
        command = ["py", "-" + version] if _WINDOWS else ["python" + version]
        test = "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '" + version + "')"
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
    _write(_STAMP, "%s %s\n" % (_fingerprint(), "dev" if dev else "run"))
    os.remove(_UNFINISHED)


def _tell_needs():
    import shutil

    if os.path.exists(venv_python()):
        say("Bringing %s up to date." % VENV)
        return
    say(
        "First start: this downloads about %d MB and takes about %.1f GB of disk: %.1f GB of "
        "Python packages in %s and %.1f GB for the model SmolLM2 in your data folder (%s). "
        "README.md says how to remove all of it."
        % (
            _DOWNLOAD_MB + _MODEL_DOWNLOAD_MB,
            (_VENV_MB + _MODEL_MB) / 1000,
            _VENV_MB / 1000,
            VENV,
            _MODEL_MB / 1000,
            data_folder(),
        )
    )
    free_mb = shutil.disk_usage(ROOT).free / 1e6
    if free_mb < _VENV_MB:
        raise SetupError(
            "Only %d MB are free there, and %d MB are needed; free some space and start again."
            % (free_mb, _VENV_MB)
        )


def data_folder():
    return str(places().data_folder())


def places():
    """explorer/places.py, which knows the data folder; it needs nothing but the library."""
    if ROOT not in sys.path:
        sys.path.insert(0, ROOT)
    from explorer import places as module

    return module


def _make_venv():
    if _runs(venv_python(), "-m", "pip", "--version"):
        return
    _need_venv_module()
    say("Making %s with Python %d.%d." % ((VENV,) + sys.version_info[:2]))
    if not _runs(sys.executable, "-m", "venv", "--clear", VENV, quiet=False):
        raise SetupError("Python could not make %s; the lines above say why." % VENV)


def _need_venv_module():
    import system_parts

    if _runs(sys.executable, "-c", "import ensurepip, venv"):
        return
    package = "python%d.%d-venv" % sys.version_info[:2]
    if not system_parts.apt_install([package], "Python's venv module is missing"):
        raise SetupError(
            "This Python lacks its venv module; install it (on Debian and Ubuntu: "
            "apt install %s) and start again." % package
        )


def _install(dev):
    # hatchling first and no build isolation: the build tool is pinned like everything else.
    steps = [["hatchling"], ["--no-build-isolation", "-e", ROOT + ("[dev]" if dev else "")]]
    _install_torch()
    for step in steps:
        if not pip("install", "-c", CONSTRAINTS, *step):
            raise SetupError(
                "The packages could not be installed; the lines above say why. If the network "
                "was away, start again: what is there already is kept."
            )


def _install_torch():
    """On Linux plain torch brings gigabytes of CUDA: take the CPU build where it will do."""
    wanted = pinned("torch")
    if not sys.platform.startswith("linux") or _installed("torch").split("+")[0] == wanted:
        return
    cpu = "torch==%s+cpu" % wanted
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
