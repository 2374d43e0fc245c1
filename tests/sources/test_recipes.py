"""Recipes of Makefiles and justfiles are read as shell scripts."""

import pytest

from earshot.sources.recipes import in_shell_form
from earshot.sources.shell import read_script


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Makefile", "a:\n\t@-docker run $(IMAGE)\n", ["docker run ${IMAGE}"]),
        ("GNUmakefile", "IMAGE ?= a/b\na: b\n\tdocker run ${IMAGE} $$HOME\n",
         ["docker run a/b ${HOME}"]),
        ("make.mk", "export OPTS := -p 1:1 \\\n  -e A=b\na:\n\tdocker run $(OPTS) x\n",
         ["docker run -p 1:1 -e A=b x"]),
        ("Makefile.dev", "a:\n\tdocker run \\\n\t-e A=$(shell hostname) \\\n\t$@\n",
         ["docker run -e A=${computed} ${computed}"]),
        # a value that the file assigns twice is not known; comments and conditions are no commands
        ("Makefile", "ifdef A\nI = a\nelse\nI = b\nendif\n#\tdocker run c\na:\n\tdocker run $(I)\n",
         ["docker run ${I}"]),
        ("Makefile", "a: ; @ - docker run x; y\nb: C=1;2\n", ["docker run x", "y"]),
        ("Makefile", "define RUN\nIt's up\n@docker run x\nendef\ndocker run y\na:\n\t$(RUN)\n",
         ["docker run x", "${RUN}"]),
        ("justfile", "p := \"1\"\na x='2':\n  @docker run -p {{p}}:{{ x }} \\\n      -e {{f()}}\n",
         ["docker run -p 1:${x} -e ${computed}"]),
        (".justfile", "the-image := 'x'\na:\n  #!/bin/bash\n  docker run {{the-image}}\n",
         ["docker run x"]),
        ("start.sh", "docker run $(IMAGE)\n", ["docker run ${computed}", "IMAGE"]),
    ],
)  # fmt: skip
def test_recipes_are_shell_commands(name: str, text: str, expected: list[str]) -> None:
    script = read_script(in_shell_form(text, name))
    assert [" ".join(command.words) for command in script.commands] == expected


def test_a_command_keeps_its_line() -> None:
    text = "I = a \\\n  b\n\na:\n\tdate\n\tdocker run \\\n\t  $(I)\n"
    commands = read_script(in_shell_form(text, "Makefile")).commands
    assert [(command.line, command.last_line) for command in commands] == [(5, 5), (6, 7)]
