"""Image, Compose files, manifests and the unit of systemd are valid and fit the server that they start."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.config.engine import EngineConfig
from server.cli import main
from server.config import ServerConfig
from server.edge.lifecycle import GRACE
from server.serve import FLUSH
from server.settings import settings_of
from tests.support import REPOSITORY as ROOT
from tests.support.files import documents, program, run

BIN = Path(sys.executable).parent
UNIT = (ROOT / "deploy" / "systemd" / "knapserve.service").read_text("utf-8")
PROGRAM = "/opt/knapserve/.venv/bin/knapserve"
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
COPIED = [word for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.MULTILINE) for word in line.split()[:-1]]
SETTINGS = {f"KNAPSERVE_{found.name.upper()}" for kind in (ServerConfig, EngineConfig) for found in settings_of(kind)}
STOPPING = ServerConfig().shutdown_timeout + GRACE + FLUSH  # seconds from SIGTERM to the end, at most
COMPOSE_FILES = ("docker-compose.yml", "docker-compose.gpu.yml")


def linter(name: str) -> str:
    """Return the path of a linter; the test is skipped if the extra `check` is not installed."""
    if not (BIN / name).exists():
        pytest.skip(f"{name} is not installed; `make check` installs it")
    return str(BIN / name)


def instruction(name: str) -> str:
    (found,) = re.findall(rf"^{name} (.+)$", DOCKERFILE, re.MULTILINE)
    return str(found)


def services() -> dict[str, Any]:
    (compose,) = documents("docker-compose.yml")
    return dict(compose["services"])


def manifest(kind: str) -> Any:
    files = ("deploy/kubernetes/knapserve.yaml", "deploy/kubernetes/state.yaml")
    (found,) = (one for name in files for one in documents(name) if one["kind"] == kind)
    return found


def server_container() -> dict[str, Any]:
    (container,) = manifest("Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(container)


# -- the image --------------------------------------------------------------------------------------------------------


def test_hadolint_accepts_the_dockerfile() -> None:
    linted = run(linter("hadolint"), "--failure-threshold", "style", "Dockerfile")
    assert linted.returncode == 0, linted.stdout


def test_image_and_makefile_pin_the_same_torch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (version,) = re.findall(r"^ARG TORCH=(.+)$", DOCKERFILE, re.MULTILINE)
    pin = f"torch=={version}"
    assert pin in project["dependencies"]
    assert pin in (ROOT / "Makefile").read_text("utf-8")


def test_the_copied_files_make_the_whole_package(tmp_path: Path) -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == set(COPIED)
    source = tmp_path / "source"
    source.mkdir()
    for name in COPIED:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source)
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path))
    built = run(sys.executable, "-m", "pip", "wheel", *options, str(source))
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("knapserve-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    code = {path.relative_to(source).as_posix() for folder in ("bench", "engine", "papers", "profiles", "server")
            for path in (source / folder).rglob("*.py")}  # fmt: skip
    data = {"engine/kernels/kernels.cpp", "engine/kernels/layer_pass.h", "server/ui/page.html"}
    data |= {path.relative_to(source).as_posix() for path in (source / "server/ui").rglob("*") if path.is_file()}
    data |= {path.relative_to(source).as_posix() for pattern in ("kernels/*.cpp", "kernels/*.h")
             for path in (source / "engine").glob(pattern)}  # fmt: skip
    assert {*code, *data} <= names


def test_the_user_is_not_root() -> None:
    assert instruction("USER") == "10001:10001"
    security = manifest("Deployment")["spec"]["template"]["spec"]["securityContext"]
    assert security["runAsNonRoot"]
    assert {security["runAsUser"], security["runAsGroup"], security["fsGroup"]} == {10001}


@pytest.mark.parametrize("status", [200, 503])
def test_the_health_check_requests_health(status: int) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    python, *arguments = json.loads(instruction("HEALTHCHECK").partition("CMD ")[2])
    assert python == "python"
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        environment = os.environ | {"KNAPSERVE_PORT": str(server.server_port)}
        checked = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, timeout=30)
    assert (checked.returncode == 0) == (status == 200)


@pytest.mark.parametrize(("device", "index"), [("cpu", "whl/cpu"), ("cuda", None), ("tpu", None)])
def test_the_device_chooses_the_torch(device: str, index: str | None, tmp_path: Path) -> None:
    (step,) = (step for step in re.findall(r"^RUN (.+)$", DOCKERFILE, re.MULTILINE) if "torch==" in step)
    pip = tmp_path / "pip"
    pip.write_text('#!/bin/sh\necho "$@"\n')
    pip.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.defpath}", "DEVICE": device, "TORCH": "1.2.3"}
    made = subprocess.run(["sh", "-c", step], env=environment, capture_output=True, text=True, timeout=30)
    assert (made.returncode == 0) == (device != "tpu")
    assert ("install torch==1.2.3" in made.stdout) == (device != "tpu")
    assert ("--index-url" in made.stdout) == (index is not None)
    assert index is None or made.stdout.endswith(f"{index}\n")


# -- Compose ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMPOSE_FILES)
def test_compose_files_fit_the_schema(name: str) -> None:
    checked = run(linter("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", name)
    assert checked.returncode == 0, checked.stdout


def test_the_compose_file_for_gpus_changes_the_device_alone() -> None:
    """Compose merges it with the other file."""
    (gpu,) = documents("docker-compose.gpu.yml")
    server = gpu["services"]["server"]
    assert (gpu.keys(), gpu["services"].keys()) == ({"services"}, {"server"})
    assert server.keys() == {"build", "image", "environment", "deploy"}
    assert server["build"] == {"args": {"DEVICE": "cuda"}}
    assert server["environment"] == {"KNAPSERVE_DEVICE": "cuda"}


def test_compose_passes_env_and_fixes_only_what_the_container_relies_on() -> None:
    server = services()["server"]
    assert server["env_file"] == [{"path": ".env", "required": False}]
    settings = {name: value for name, value in server["environment"].items() if name.startswith("KNAPSERVE_")}
    assert settings.keys() <= SETTINGS
    fixed = {name: value for name, value in settings.items() if value is not None}
    port = instruction("EXPOSE")
    log_format = "${KNAPSERVE_LOG_FORMAT:-json}"
    assert fixed == {"KNAPSERVE_HOST": "0.0.0.0", "KNAPSERVE_PORT": port, "KNAPSERVE_LOG_FORMAT": log_format}


def test_foreign_images_are_pinned() -> None:
    for name, service in services().items():
        if "build" not in service:
            assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", service["image"]), name


def test_every_file_that_compose_mounts_exists() -> None:
    (compose,) = documents("docker-compose.yml")
    for service in services().values():
        for mount in service["volumes"]:
            source = re.sub(r"\$\{\w+:-(\w+)\}", r"\1", mount).split(":")[0]
            assert (ROOT / source).is_dir() if source.startswith(".") else source in compose["volumes"]


def test_prometheus_scrapes_the_service_of_the_server() -> None:
    (config,) = documents("deploy/prometheus/prometheus.yml")
    (job,) = config["scrape_configs"]
    (target,) = job["static_configs"][0]["targets"]
    host, port = target.split(":")
    assert services()[host]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert instruction("EXPOSE") == port


# -- Kubernetes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Deployment", "Service", "PersistentVolumeClaim"])
def test_manifests_fit_the_schema(kind: str) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="`make check` installs kubernetes-validate")
    kubernetes_validate.validate(manifest(kind), "1.34", strict=True)


def test_a_start_may_download_the_model() -> None:
    probe = server_container()["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 3600


def test_a_new_pod_needs_no_second_gpu() -> None:
    assert manifest("Deployment")["spec"]["strategy"] == {"type": "Recreate"}


def test_state_can_outlive_pods() -> None:
    """The kustomization changes only the volume of the state."""
    built = run(program("kubectl", "kubectl"), "kustomize", "deploy/kubernetes")
    assert built.returncode == 0, built.stderr
    made = {one["kind"]: one for one in yaml.safe_load_all(built.stdout)}
    deployment = manifest("Deployment")
    (state,) = (volume for volume in deployment["spec"]["template"]["spec"]["volumes"] if volume["name"] == "state")
    claim = manifest("PersistentVolumeClaim")
    del state["emptyDir"]
    state["persistentVolumeClaim"] = {"claimName": claim["metadata"]["name"]}
    assert made == {"Deployment": deployment, "Service": manifest("Service"), "PersistentVolumeClaim": claim}


def test_services_and_monitors_find_the_pods() -> None:
    (monitor,) = documents("deploy/kubernetes/servicemonitor.yaml")
    deployment, service = manifest("Deployment"), manifest("Service")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels == service["spec"]["selector"]
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    assert service["metadata"]["name"] == "knapserve"  # the job that the alerts ask for
    (port,) = service["spec"]["ports"]
    (container_port,) = server_container()["ports"]
    assert port["targetPort"] == container_port["name"]
    assert monitor["spec"]["endpoints"][0]["port"] == port["name"]
    assert str(container_port["containerPort"]) == instruction("EXPOSE")


def test_probes_request_health_and_live() -> None:
    container = server_container()
    paths = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    assert paths == {"startup": "/health", "readiness": "/health", "liveness": "/live"}


def test_every_directory_that_is_written_is_a_volume() -> None:
    written = set(re.findall(r"/var/\w+/knapserve", DOCKERFILE))
    assert written == {"/var/lib/knapserve", "/var/cache/knapserve"}
    assert {*written, "/models", "/tmp"} == {mount["mountPath"] for mount in server_container()["volumeMounts"]}
    compose = services()["server"]
    assert {*written, "/models"} == {mount.rpartition("}")[2].split(":")[1] for mount in compose["volumes"]}


def test_triton_finds_what_it_needs_in_the_image() -> None:
    """A compiler, the headers of Python (`python` images have them), the driver, and a place for its kernels."""
    assert re.search(r"^FROM python:\S+-slim-\w+$", DOCKERFILE, re.MULTILINE)
    assert re.search(r"apt-get install [^&]*\bg\+\+ ", DOCKERFILE)
    set_ = dict(word.split("=") for word in instruction("ENV").split())
    assert "/usr/local/nvidia/lib64" in set_["LD_LIBRARY_PATH"].split(":")
    volume = "/var/cache/knapserve"
    assert {set_["XDG_CACHE_HOME"], str(Path(set_["TRITON_CACHE_DIR"]).parent)} == {volume}
    assert volume in json.loads(instruction("VOLUME"))
    compose, container = services()["server"], server_container()
    assert compose["read_only"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert compose["tmpfs"] == ["/tmp:exec"]  # else Docker mounts it noexec
    assert f"cache:{volume}" in compose["volumes"]
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert not any(mounts[path].get("readOnly") for path in (volume, "/tmp"))


# -- all --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "knapserve.service"
    unit.write_text(UNIT.replace(PROGRAM, sys.executable), "utf-8")  # systemd looks for the program
    done = run(program("systemd-analyze", "systemd"), "verify", str(unit))
    assert (done.returncode, done.stderr) == (0, "")


def test_grace_periods_leave_time_to_drain() -> None:
    pod = manifest("Deployment")["spec"]["template"]["spec"]
    sleep = server_container()["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] >= STOPPING + sleep
    assert int(services()["server"]["stop_grace_period"].removesuffix("s")) >= STOPPING
    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    assert int(seconds) >= STOPPING


def test_every_setting_named_in_deployment_files_exists() -> None:
    texts = [DOCKERFILE, *((ROOT / name).read_text("utf-8") for name in (*COMPOSE_FILES, "docs/operations.md"))]
    texts.append((ROOT / "deploy/kubernetes/knapserve.yaml").read_text("utf-8").partition("spec:")[2])
    named = {name for text in texts for name in re.findall(r"KNAPSERVE_[A-Z_]+", text)}
    assert named <= SETTINGS | {"KNAPSERVE_CONFIG"}  # which names their file
    assert "KNAPSERVE_HOST" in named


def test_arguments_are_known_to_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """`main` returns 2 for bad settings, and raises SystemExit for unknown arguments."""
    assert instruction("ENTRYPOINT") == '["knapserve"]'
    assert instruction("CMD") == '["serve"]'
    (line,) = re.findall(r"^ExecStart=(.+)$", UNIT.replace("\\\n", " "), re.MULTILINE)
    started, *of_unit = shlex.split(line)
    assert started == PROGRAM
    for arguments in (server_container()["args"], of_unit):
        assert arguments[0] == "serve"
        assert main([*arguments, "--config", "missing.toml"]) == 2
        assert "missing.toml" in capsys.readouterr().err
    assert manifest("Deployment")["spec"]["template"]["spec"]["enableServiceLinks"] is False
