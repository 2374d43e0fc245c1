"""Doubles of Kafka's command-line tools: each answers from a file, or fails without one."""

from pathlib import Path

TOOLS = ("kafka-metadata-quorum.sh", "kafka-topics.sh")


class KafkaToolDoubles:
    """Doubles of Kafka's tools in ``folder``.

    Each call of a tool gets its next answer. The last answer is repeated."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        for tool in TOOLS:
            script = folder / tool
            script.write_text(
                "#!/bin/bash\n"
                f"cd {folder}/{tool}.answers || exit 1\n"
                "first=$(ls | head -n 1)\n"
                '[[ -n $first ]] && cat "$first" || exit 1\n'
                '[[ $(ls | wc -l) -eq 1 ]] || rm "$first"\n'
            )
            script.chmod(0o755)

    def answer(self, tool: str, *texts: str) -> None:
        answers = self.folder / f"{tool}.answers"
        answers.mkdir()
        for number, text in enumerate(texts):
            (answers / str(number)).write_text(text)
