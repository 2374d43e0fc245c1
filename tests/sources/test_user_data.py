"""Broker properties read back from user data of many a hand."""

from __future__ import annotations

import base64
import contextlib
import gzip
import itertools
from collections.abc import Callable
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from earshot.listeners.properties import NodeSettings
from earshot.listeners.render import settings
from earshot.sources.user_data import (
    UserDataFile,
    broker_files,
    decode_user_data,
    plain_user_data,
    speaks_of_brokers,
)
from earshot.user_data.render import PROPERTIES, user_data
from tests.user_data.nodes import boot, cluster, node

FILE = "node.id=1\nadvertised.listeners=A://b1.example.com:9092\n"
VALUES = {"node.id": "1", "advertised.listeners": "A://b1.example.com:9092"}
HERE = f"cat > f <<'X'\n{FILE}X\n"
SCRIPT = f"#!/bin/sh\n{HERE}"


def config(*files: dict[str, object], **more: object) -> str:
    return "#cloud-config\n" + yaml.safe_dump({"write_files": list(files), **more})


def one(text: str) -> UserDataFile:
    (file,) = broker_files(text)
    return file


def test_our_own_user_data_are_read_back() -> None:
    plan = cluster(node(1))
    file = one(user_data(plan, node(1), boot()))
    assert file.path == PROPERTIES
    assert file.settings.values == settings(plan, node(1))
    assert file.settings.notes["scopes"]
    assert (file.computed, file.whole) == ({}, True)


ENCODED = base64.b64encode(FILE.encode()).decode()
PACKED = base64.b64encode(gzip.compress(FILE.encode())).decode()


@pytest.mark.parametrize("entry", [
    {"content": FILE},
    {"content": FILE.encode()},
    *({"content": ENCODED, "encoding": encoding} for encoding in ("b64", "base64")),
    *({"content": PACKED, "encoding": encoding}
      for encoding in ("gz+b64", "gz+base64", "gzip+b64")),
])  # fmt: skip
def test_files_of_a_cloud_config(entry: dict[str, object]) -> None:
    file = one(config({"path": "/opt/kafka/config/server.properties", **entry}))
    assert file.path == "/opt/kafka/config/server.properties"
    assert file.settings.values == VALUES
    assert one(config(entry)).path == ""


@pytest.mark.parametrize(
    ("line", "path", "whole"),
    [
        ("cat > /k/server.properties <<'EOF'", "/k/server.properties", True),
        ('cat <<"EOF" >/k/server.properties', "/k/server.properties", True),
        ("cat <<\\EOF > /k/server.properties", "/k/server.properties", True),
        ("sudo tee /k/server.properties <<EOF >/dev/null", "/k/server.properties", True),
        ("cat <<EOF > $HOME/server.properties", "$HOME/server.properties", True),
        ("cat <<-EOF 2>&1 > '/k/a b'", "/k/a b", True),
        ("kafka-server-start.sh /dev/stdin <<EOF", "", True),
        ("tee '/f' <<'EOF' >> /g", "/f", True),
        # added to what is there
        ("tee -a /f <<'EOF'", "/f", False),
        ("tee --append /f <<'EOF'", "/f", False),
        ("cat >> /f <<'EOF'", "/f", False),
    ],
)
def test_here_documents_of_a_script(line: str, path: str, whole: bool) -> None:
    file = one(f"#!/bin/bash\nset -e\n{line}\n{FILE}EOF\nsystemctl start kafka\n")
    assert (file.path, file.whole) == (path, whole)
    assert file.settings.values == VALUES


@pytest.mark.parametrize(
    ("lines", "values"),
    [
        ("echo 'listeners=A://:1' >> s.properties", {"listeners": "A://:1"}),
        ('P=1\necho "listeners=A://:$P" | sudo tee -a s.properties', {"listeners": "A://:1"}),
        ('sudo sed -i "s|#listeners=.*|listeners=A://:1|" s.properties', {"listeners": "A://:1"}),
        ("sed -i -e 's#^listeners=.*#listeners=A://:1#g' s.properties", {"listeners": "A://:1"}),
        (
            "echo listeners=A://:1 >> s.properties\necho 'listeners=B://:1' >> s.properties",
            {"listeners": "B://:1"},
        ),
    ],
)
def test_properties_that_commands_set(lines: str, values: dict[str, str]) -> None:
    file = one(f"#!/bin/bash\n{lines}\n")
    assert (file.path, file.whole, file.settings.values) == ("s.properties", False, values)


@pytest.mark.parametrize(
    "line",
    [
        "echo 'listeners=A://:1'",
        "# echo 'listeners=A://:1' >> f",
        "if $X; then\n  echo 'listeners=A://:1' >> f\nfi",
        "set_up() {\n  echo 'listeners=A://:1' >> f\n}",
        "sed 's/listeners=.*/listeners=A:1/' f",
        "sed -i 's/your.host/kafka/' f",
        "sed -i 's/a=.*/listeners=A:1/' f",
    ],
)
def test_commands_that_set_no_property_for_sure(line: str) -> None:
    assert broker_files(f"#!/bin/bash\n{line}\n") == ()


def test_tabs_before_the_lines_of_one_that_strips_them() -> None:
    body = "".join(f"\t{line}\n" for line in FILE.splitlines())
    assert one(f"#!/bin/sh\ncat <<-X >f\n{body}\tX\n").settings.values == VALUES


def test_a_script_in_runcmd_and_one_in_a_mime_archive() -> None:
    script = f"cat >f <<'X'\n{FILE}X"
    assert one(config(runcmd=[["true"], script])).settings.values == VALUES
    archive = MIMEMultipart()
    archive.attach(MIMEText("#cloud-config\npackages: [jq]\n", "cloud-config"))
    archive.attach(MIMEText(f"#!/bin/sh\n{script}\n", "x-shellscript"))
    assert one(archive.as_string()).settings.values == VALUES


def test_text_that_is_appended_to_a_new_file_and_to_an_existing_one() -> None:
    more = "cat >>f <<'X'\nlisteners=A://:9092\nX\n"
    file = one(f"#!/bin/sh\ncat >f <<'X'\n{FILE}X\n{more}")
    assert file.settings.values == {**VALUES, "listeners": "A://:9092"}
    assert file.whole
    assert not one(config({"path": "f", "content": FILE, "append": True})).whole


def test_what_a_shell_would_put_in() -> None:
    text = """#!/bin/bash
ID=7
NAME="b7.example.com"
TWICE=a
TWICE=b
IP=$(hostname -i)
cat > f <<EOF
node.id=$ID
listeners=A://:9092,B://:9093,C://:$PORT
advertised.listeners=A://${NAME}:9092,B://$(curl -s $(cat url)):9093,C://$TWICE:9094
literal=\\$ID
rack=$IP
EOF
"""
    file = one(text)
    places = {text: place for place, text in file.computed.items() if place in file.places}
    assert set(places) == {"$(curl -s $(cat url))", "$TWICE"}
    first, second = places["$(curl -s $(cat url))"], places["$TWICE"]
    assert file.settings.values == {
        "node.id": "7",
        "advertised.listeners": f"A://b7.example.com:9092,B://{first}:9093,C://{second}:9094",
        "literal": "$ID",
    }
    assert file.computed["rack"] == "$IP"
    assert file.computed["listeners"] == "A://:9092,B://:9093,C://:$PORT"


def test_a_quoted_here_document_keeps_its_dollars_and_a_template_is_computed() -> None:
    file = one("#!/bin/sh\ncat >f <<'X'\nnode.id=$ID\nX\n")
    assert (file.settings.values, file.computed) == ({"node.id": "$ID"}, {})
    content = "node.id=1\nadvertised.listeners=A://{{ v1.local_hostname }}:9092\n"
    file = one("## template: jinja\n" + config({"path": "f", "content": content}))
    assert list(file.computed.values()) == ["{{ v1.local_hostname }}"]


@pytest.mark.parametrize("text", [
    "",
    "#cloud-config\n",
    "#cloud-config\nwrite_files: {path: x}\n",
    "#cloud-config\nwrite_files: [1, {content: 3}, {content: '!', encoding: gz+b64}]\n",
    "#cloud-config\n: [\n",
    "#cloud-config\nruncmd: 3\n",
    "#cloud-config\na: 2001-99-99\n",
    "#cloud-config\n" + "[" * 9000,
    "#!/bin/sh\ncat > f <<EOF\n",
    "#!/bin/sh\n# cat > f <<EOF\nnode.id=1\n",
    "#!/bin/sh\ncat <<< node.id=1\n",
    "#!/bin/sh\ncat > c <<'X'\nbootstrap.servers=b:1\nlisteners=http://:8083\nnode.id=1\nX\n",
    "MIME-Version: 1.0\n",
    # a text that no shell is named for is no script
    *(f"{head}{HERE}" for head in ("", "echo\n", "#include\n", "#cloud-boothook\n")),
    # texts that were made to hold the reader up
    "## template: jinja\n" * 2000 + "#cloud-config\n",
    "".join(f"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b{i}\n\n--b{i}\n"
            for i in range(2000)),
    "#cloud-config\na: &a {k: v}\n"
    + "".join(f"{x}: &{x} {{<<: [*{y}, *{y}]}}\n"
              for y, x in itertools.pairwise("abcdefghijklmnopqrstuvwxyzABCDEFGH")),
    "#cloud-config\n" + "[" * 5000,
    "#!/bin/sh\ncat <<EOF >/etc/kafka/server.properties\n" + "${" * 200_000,
    "## template: jinja\n#!/bin/sh\ncat <<EOF >/x\n" + "{{" * 200_000,
    "#!/bin/sh\n" + "x" * (1 << 20),
])  # fmt: skip
def test_no_broker_is_found_where_none_is(text: str) -> None:
    assert broker_files(text) == ()


def test_base64_and_gzip() -> None:
    assert decode_user_data(base64.b64encode(b"text").decode()) == "text"
    assert decode_user_data(base64.b64encode(gzip.compress(b"text")).decode()) == "text"
    for text in ("a", base64.b64encode(b"\x1f\x8b\x00").decode(), "/w=="):
        with pytest.raises(ValueError, match="cannot be read"):
            decode_user_data(text)


@given(st.binary())
def test_packed_bytes_that_are_broken_are_one_clear_error(data: bytes) -> None:
    packed = gzip.compress(b"text")[:10] + data
    with contextlib.suppress(ValueError):
        decode_user_data(base64.b64encode(packed).decode())
    files = {"content": base64.b64encode(packed).decode(), "encoding": "gz+b64", "path": "/x"}
    broker_files("#cloud-config\n" + yaml.safe_dump({"write_files": [files]}))


@given(
    st.text(),
    st.sampled_from(["", "#cloud-config\n", "#!/bin/sh\ncat <<EOF\n", "MIME-Version: 1\n"]),
)
def test_no_text_breaks_the_reader(text: str, head: str) -> None:
    broker_files(head + text)
    assert speaks_of_brokers(f"{text}advertised.listeners")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("## template: jinja\n" * 7 + SCRIPT, True),
        ("## template: jinja\n" * 8 + SCRIPT, False),
        (SCRIPT.ljust(1 << 20, "\n"), True),
        (SCRIPT.ljust((1 << 20) + 1, "\n"), False),
    ],
    ids=["templates within each other", "one more", "as long as may be", "longer"],
)
def test_so_many_templates_are_opened_and_so_much_is_read(text: str, read: bool) -> None:
    assert bool(broker_files(text)) is read


@pytest.mark.parametrize("key", ["bootcmd", "runcmd"])
def test_commands_of_a_cloud_config_are_read_line_by_line(key: str) -> None:
    document: dict[str, object] = {key: [["list"], *HERE.splitlines()]}
    assert one(config(**document)).settings.values == VALUES
    assert one(config({"path": "g", "content": FILE}, **{key: "no list"})).path == "g"


def test_several_files_stand_in_their_order() -> None:
    second = FILE.replace("node.id=1", "node.id=2")
    files = broker_files(f"#!/bin/sh\n{HERE}cat > g <<'X'\n{second}X\ncat > h <<'X'\na=b\nX\n")
    assert [(file.path, file.settings.values["node.id"]) for file in files] == [
        ("f", "1"),
        ("g", "2"),
    ]


def test_what_is_computed_in_parts_of_one_file_is_kept_of_both() -> None:
    text = "#!/bin/sh\ncat > f <<X\nnode.id=$A\nX\ncat >> f <<X\nbroker.rack=$B\nX\n"
    file = one(text)
    assert file.computed == {"node.id": "$A", "broker.rack": "$B"}
    assert (file.whole, file.settings.values, file.places) == (True, {}, frozenset())


@pytest.mark.parametrize(
    ("assigned", "value"),
    [("ID=7", "7"), ("export ID='7'", "7"), ('readonly ID="7"  # why', "7"), ("ID=", "")],
)
def test_a_literal_that_is_given_once_is_known(assigned: str, value: str) -> None:
    file = one(f"#!/bin/sh\n{assigned}\ncat > f <<X\nbroker.id=1\na=x${{ID}}y\\\nz\nX\n")
    assert file.settings.values == {"broker.id": "1", "a": f"x{value}yz"}


def test_a_client_beside_a_broker_is_none_also_where_it_is_computed() -> None:
    assert broker_files("#!/bin/sh\ncat > f <<X\nnode.id=1\nbootstrap.servers=$B\nX\n") == ()
    for text in (
        "an advertised.listeners b",
        "docker run -e KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://a:9092",
        "KAFKA_CFG_ADVERTISED_LISTENERS",
        "advertised_kafka_api:",
        "rpk redpanda start --advertise-kafka-addr a:9092",
    ):
        assert speaks_of_brokers(text), text
    assert not speaks_of_brokers("listeners")


@pytest.mark.parametrize(
    ("key", "text", "masked"),
    [
        ("ssl.key.password", "$(cat /key)", "***"),
        ("advertised.listeners", "A://$IP:9092", "A://$IP:9092"),
        ("advertised.listeners", "$(ask --password planted)", "$(ask --password ***"),
    ],
)
def test_no_secret_is_shown_of_what_an_instance_computes(key: str, text: str, masked: str) -> None:
    assert UserDataFile("f", NodeSettings({}), {key: text}).shown(key) == masked


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_user_data_that_are_base64_already_are_decoded_once(
    pack: Callable[[bytes], bytes],
) -> None:
    script = "#!/bin/sh\necho"
    text = base64.b64encode(pack(script.encode())).decode()
    assert plain_user_data(text) == script
    assert plain_user_data(script) == script
    for other in ("", "echo", base64.b64encode(b"no script").decode(), "\u00e9"):
        assert plain_user_data(other) == other
