"""What a node keeps of the files that its settings name, and for how long."""

from pathlib import Path

import pytest
from earshot_pulumi.local.node_files import FOLDER, as_written, keep, prune, with_own_files
from earshot_pulumi.local.process_record import PROPERTIES

from earshot.listeners.properties import NodeSettings, read_properties, write_properties


@pytest.fixture
def node(tmp_path: Path) -> Path:
    (tmp_path / "node-1").mkdir()
    return tmp_path / "node-1"


def written(values: dict[str, str]) -> str:
    return write_properties(NodeSettings(values, {"kafka_version": "4.1.1"}))


def values(text: str) -> dict[str, str]:
    return dict(read_properties(text).values)


def test_a_file_that_changes_is_kept_as_it_was(node: Path) -> None:
    store = node.parent / "store.pem"
    store.write_text("one")
    settings = written({"node.id": "1", "ssl.keystore.location": str(store), "log.dirs": "/data"})
    first = with_own_files(node, settings)
    store.write_text("two")
    second = with_own_files(node, settings)
    names = [values(text)["ssl.keystore.location"] for text in (first, second)]
    assert [Path(name).read_text() for name in names] == ["one", "two"]
    assert all(Path(name).stat().st_mode & 0o777 == 0o600 for name in names)
    assert all(Path(name).parent == node / FOLDER for name in names)
    assert as_written(first) == as_written(second) == settings
    assert with_own_files(node, settings) == second


def test_settings_that_name_no_file_stay_as_they_are(node: Path) -> None:
    settings = written(
        {
            "ssl.keystore.location": "/there/is/none.pem",
            "ssl.truststore.location": "",
            "log.dirs": str(node),
            "ssl.engine.location": str(node),
        }
    )
    assert with_own_files(node, settings) == settings == as_written(settings)


def test_a_login_names_files_too(node: Path) -> None:
    tab = node.parent / "kafka.keytab"
    tab.write_bytes(b"\0key")
    login = f'Krb5LoginModule required keyTab="{tab}" principal="kafka/a@B";'
    settings = written({"listener.name.a.gssapi.sasl.jaas.config": login})
    made = with_own_files(node, settings)
    (new,) = values(made).values()
    assert new != login and 'principal="kafka/a@B"' in new
    assert as_written(made) == settings


PROVIDER = "org.apache.kafka.common.config.provider"


@pytest.mark.parametrize("allowed", ["", "/secrets"])
def test_files_of_config_providers_are_kept_as_they_were(node: Path, allowed: str) -> None:
    folder = node.parent / "secrets"
    folder.mkdir()
    (folder / "one.properties").write_text("user=u\npassword=p\n")
    (folder / "password").write_text("p")
    own = {"config.providers.file.param.allowed.paths": allowed} if allowed else {}
    settings = written(
        {
            "config.providers": "file, folder,env",
            "config.providers.file.class": f"{PROVIDER}.FileConfigProvider",
            "config.providers.folder.class": f"{PROVIDER}.DirectoryConfigProvider",
            "config.providers.env.class": f"{PROVIDER}.EnvVarConfigProvider",
            **own,
            "jaas": f"u=${{file:{folder}/one.properties:user}} "
            f"p=${{file:{folder}/one.properties:password}};",
            "password": f"${{folder:{folder}:password}}",
            "missing": f"${{file:{folder}/two.properties:user}} ${{folder:{folder}:none}}",
            "other": "${env:/there:HOME} ${vault:/a:b}",
        }
    )
    made = with_own_files(node, settings)
    (folder / "one.properties").write_text("broken")
    (folder / "password").write_text("broken")
    (properties,) = (node / FOLDER).glob("*-one.properties")
    (password,) = (node / FOLDER).glob("*-password")
    assert properties.read_text() == "user=u\npassword=p\n" and password.read_text() == "p"
    before, after = values(settings), values(made)
    assert after["jaas"] == f"u=${{file:{properties}:user}} p=${{file:{properties}:password}};"
    assert after["password"] == f"${{folder:{node / FOLDER}:{password.name}}}"
    for key in ("missing", "other", "config.providers"):
        assert after[key] == before[key]
    if allowed:
        paths = after["config.providers.file.param.allowed.paths"]
        assert paths == f"/secrets,{node / FOLDER}"
    assert as_written(made) == settings
    assert with_own_files(node, made) == made


def test_a_path_is_taken_from_where_the_node_works(node: Path) -> None:
    (node / "own.jks").write_bytes(b"\xfe\xed")
    made = with_own_files(node, written({"listener.name.a.ssl.keystore.location": "own.jks"}))
    assert Path(next(iter(values(made).values()))).read_bytes() == b"\xfe\xed"


def test_a_node_of_an_earlier_release_gets_copies_of_what_it_runs_with(node: Path) -> None:
    keep(node)  # it was never started
    store = node.parent / "store.pem"
    store.write_text("one")
    settings = written({"ssl.keystore.location": str(store)})
    (node / PROPERTIES).write_text(settings)
    keep(node)
    store.write_text("two")
    kept = (node / PROPERTIES).read_text()
    assert Path(values(kept)["ssl.keystore.location"]).read_text() == "one"
    keep(node)
    assert (node / PROPERTIES).read_text() == kept
    assert as_written(kept) == settings


def test_only_what_the_node_runs_with_stays(node: Path) -> None:
    prune(node)
    store = node.parent / "store.pem"
    settings = written({"ssl.keystore.location": str(store)})
    for content in ("one", "two"):
        store.write_text(content)
        (node / PROPERTIES).write_text(with_own_files(node, settings))
    prune(node)
    assert [path.read_text() for path in (node / FOLDER).iterdir()] == ["two"]
