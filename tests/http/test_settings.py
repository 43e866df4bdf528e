"""Flags override environment variables, which override the file.

Unknown keys fail, and every error names its source.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from engine.config.engine import EngineConfig
from engine.config.fields import PolicySettings, parse_bytes, setting
from engine.errors import ConfigError
from server.cli import main
from server.config import ServerConfig
from server.settings import Settings, add_arguments, settings_of


@dataclass(frozen=True)
class Inner:
    depth: int = setting(1, "a number of the nested settings")


@dataclass(frozen=True)
class Added(PolicySettings):
    name = "of-a-package"
    depth: int = setting(1, "a number of another package", limits=(0, 9))


@dataclass(frozen=True)
class Sample:
    number: int = setting(1, "a number")
    rate: float | None = setting(None, "a rate")
    names: tuple[str, ...] = setting((), "names")
    where: Path | None = setting(None, "a path")
    on: bool = setting(True, "a switch")
    mode: str = setting("a", "100% of modes", choices=("a", "b"))
    size: int = setting(0, "bytes", parse=parse_bytes)
    pair: tuple[int, ...] = setting((), "numbers", parse=lambda text: tuple(map(int, text.split(","))))
    long_name: str = setting("", "a text")
    inner: Inner = Inner()
    others: tuple[PolicySettings, ...] = setting((), "", added=lambda: {"of-a-package": Added})


def load(*flags: str, file: Path | None = None, **environ: str) -> Sample:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config")
    add_arguments(parser, Sample)
    args = parser.parse_args([*flags, *(["--config", str(file)] if file else [])])
    return Settings.read((Sample,), args, {f"KNAPSERVE_{name}": value for name, value in environ.items()}).build(Sample)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_without_sources_settings_have_their_defaults() -> None:
    assert load() == Sample(others=(Added(),))


def test_flags_override_variables_and_variables_override_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "c.toml", "number = 2\nrate = 2\nmode = 'b'\n")
    assert load(file=file) == replace(load(), number=2, rate=2.0, mode="b")
    assert load(file=file, NUMBER="3", RATE="3.5") == replace(load(), number=3, rate=3.5, mode="b")
    assert load("--number", "4", file=file, NUMBER="3", RATE="3.5") == replace(load(), number=4, rate=3.5, mode="b")


def test_each_source_sets_each_type(tmp_path: Path) -> None:
    expected = replace(load(), number=5, rate=0.5, names=("x", "y"), where=Path("/p"), on=False, mode="b")
    expected = replace(expected, size=2048, pair=(0, -1), long_name="r")
    flags = "--number 5 --rate 0.5 --names x y --where /p --no-on --mode b --size 2KiB --pair 0,-1 --long-name r"
    assert load(*flags.split()) == expected
    environ = {"NUMBER": "5", "RATE": "0.5", "NAMES": "x, y", "WHERE": "/p", "ON": "false", "MODE": "b", "SIZE": "2KiB"}
    assert load(**environ, PAIR="0,-1", LONG_NAME="r") == expected
    text = 'number=5\nrate=0.5\nnames=["x","y"]\nwhere="/p"\non=false\nmode="b"\nsize=2048\npair=[0,-1]\nlong-name="r"'
    assert load(file=write(tmp_path / "c.toml", text)) == expected


def test_nested_settings_have_the_fields_name_as_prefix(tmp_path: Path) -> None:
    file = write(tmp_path / "c.toml", "inner-depth = 2")
    assert load(file=file).inner == Inner(2)
    assert load(file=file, INNER_DEPTH="3").inner == Inner(3)
    assert load("--inner-depth", "4", INNER_DEPTH="3").inner == Inner(4)
    with pytest.raises(ConfigError, match="--inner-depth: expected an integer"):
        load("--inner-depth", "x")


def test_settings_that_a_package_adds_have_the_policys_name_as_prefix(tmp_path: Path) -> None:
    assert load("--of-a-package-depth", "5").others == load(OF_A_PACKAGE_DEPTH="5").others == (Added(5),)
    assert load(file=write(tmp_path / "c.toml", "of_a_package_depth = 6")).others == (Added(6),)
    with pytest.raises(ConfigError, match="--of-a-package-depth must be between 0 and 9, not 10"):
        load("--of-a-package-depth", "10")


def test_repeated_flags_extend_a_list() -> None:
    assert load("--names", "x", "--names", "y", "z").names == ("x", "y", "z")


def test_empty_variables_are_unset() -> None:
    assert load(NUMBER="", NAMES="") == load()


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"NUMBERS": "1"}, "KNAPSERVE_NUMBERS; did you mean 'number'?"),
        ({"SERVICE_HOST": "10.0.0.1"}, "enableServiceLinks"),
        ({"PORT": "tcp://10.0.0.1:8000"}, "enableServiceLinks"),
        ({"NUMBER": "x"}, "KNAPSERVE_NUMBER: expected an integer, got 'x'"),
        ({"RATE": "nan"}, "KNAPSERVE_RATE: expected a number"),
        ({"ON": "maybe"}, "KNAPSERVE_ON: expected true or false"),
        ({"MODE": "c"}, "KNAPSERVE_MODE: expected one of a, b"),
        ({"SIZE": "12 parsecs"}, "KNAPSERVE_SIZE: "),
    ],
)
def test_a_bad_variable_is_refused_by_name(environ: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(**environ)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("numbr = 1", "unknown setting 'numbr'; did you mean 'number'?"),
        ("number = true", "number: expected an integer"),
        ("number = 1.5", "number: expected an integer"),
        ("number = [1]", "number: expected a single value"),
        ("names = 5", "names: expected a list"),
        ("mode = 5", "mode: expected text"),
        ("[number]\nx = 1", "number: expected a single value"),
        ("number = ", "not valid TOML"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(file=write(tmp_path / "c.toml", text))
    assert said in str(error.value)
    assert "c.toml" in str(error.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load(file=tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "size"), [("16MiB", 16 * 2**20), ("1kB", 1000), ("5", 5), ("1.5 KiB", 1536), ("2GB", 2 * 10**9)]
)
def test_sizes_are_bytes_with_a_unit(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-", "1TiB", "inf", "ten"])
def test_text_that_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="size"):
        parse_bytes(text)


@pytest.mark.parametrize(
    "change",
    [{"port": 65536}, {"port": -1}, {"max_body_size": 0}, {"max_n": 0}, {"shutdown_timeout": -1.0}, {"api_key": ("",)},
     {"metrics_auth": True}],
)  # fmt: skip
def test_impossible_settings_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        ServerConfig(**change)  # type: ignore[arg-type]


def help_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 0
    return capsys.readouterr().out


def test_each_setting_is_explained_by_one_of_two_helps(capsys: pytest.CaptureFixture[str]) -> None:
    usual, policies = (
        "".join(help_of(capsys, "serve", flag).split())  # without the line breaks
        for flag in ("--help", "--help-policies")
    )
    for kind in (ServerConfig, EngineConfig):
        for found in settings_of(kind):
            explained = "".join(found.spec.metadata["help"].split())
            variable = f"KNAPSERVE_{found.name.upper()})"
            assert (explained in usual and variable in usual) != (explained in policies and variable in policies)
            if found.name.startswith(("swift_", "layerskip_", "draft_confidence")):
                assert variable in policies
            if found.name.startswith(("port", "knapspec_", "lookup")):
                assert variable in usual


def test_help_is_in_groups_with_a_title(capsys: pytest.CaptureFixture[str]) -> None:
    titles = re.findall(r"^(\S.*):$", help_of(capsys, "serve", "--help"), re.MULTILINE)
    assert {"address", "API keys", "log", "model", "drafting"} <= set(titles)
    assert len(titles) == len(set(titles))
    assert "settings of the baseline policies" not in titles


def test_settings_of_the_engine_are_loaded_alike() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser, EngineConfig)
    args = parser.parse_args(["--kv-cache-memory", "4GiB", "--knapspec-rows=5", "--max-num-seqs", "3"])
    config = Settings.read((EngineConfig,), args, {"KNAPSERVE_DTYPE": "float32"}).build(EngineConfig)
    assert (config.kv_cache_memory, config.knapspec.rows, config.max_num_seqs) == (4 * 2**30, 5, 3)
    assert config.dtype == "float32"


@pytest.mark.parametrize("argv", [[], ["nothing"], ["serve", "--nothing"], ["serve", "--por", "1"], ["bench"]])
def test_wrong_usage_exits_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(argv)
    assert exit.value.code == 2
    assert "usage: knapserve" in capsys.readouterr().err


def test_wrong_settings_exit_2_without_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", "http"]) == 2
    error = capsys.readouterr().err
    assert error == "knapserve: error: --port: expected an integer, got 'http'\n"


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["--version"])
    assert exit.value.code == 0
    assert capsys.readouterr().out.startswith("knapserve ")
