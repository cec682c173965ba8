"""Debian packages, installed where that needs no password."""

import os

from setup_messages import say


def install(packages, why):
    """Installs Debian packages as root or through a sudo that asks nothing; says if it did."""
    import shutil
    import subprocess

    rights = _root_rights()
    if shutil.which("apt-get") is None or rights is None:
        return False
    say(f"{why}; installing by apt: {' '.join(packages)}")
    apt = [*rights, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    apt += ["-qq", "-o", "DPkg::Lock::Timeout=300"]
    subprocess.call([*apt, "update"])
    return subprocess.call([*apt, "install", "-y", "--no-install-recommends", *packages]) == 0


def _root_rights():
    """What to put before a command that needs root: nothing, sudo, or None where neither works."""
    import subprocess

    if os.geteuid() == 0:
        return []
    try:
        done = subprocess.call(["sudo", "-n", "true"], stderr=subprocess.DEVNULL)
    except OSError:
        return None
    return ["sudo", "-n"] if done == 0 else None
