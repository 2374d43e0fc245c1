"""Every promise of the README, and of pages that it links, has a test that `make test` runs.

If a test moves or gets another name, or if a promise changes, change its line here.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.rest import COMBINATION
from toolchain.paths import ROOT

PAGES = ["README.md", *(f"docs/{name}.md" for name in ("stacks", "commands", "library"))]

PROMISES: dict[str, list[str]] = {
    "starts three brokers, checks their names, validates them, prints the matrix": [
        "e2e/test_local_stack.py::test_the_stack_is_up_validated_and_small",
        "report/test_goldens.py",
    ],
    "You can interrupt them and run them again": [
        "e2e/test_interrupts.py::test_ctrl_c_at_any_step_and_then_up_again",
        "e2e/test_interrupts.py::test_sigkill_of_the_cli_in_the_middle_of_an_update",
        "test_interrupts.py::test_a_signal_to_the_first_process_lets_all_clean_up",
    ],
    "stops the brokers and keeps their data (unless the stack file has `data: delete`)": [
        "e2e/test_interrupts.py::test_up_twice_then_every_step_of_a_change_and_down",
        "e2e/test_local_stack.py::test_destroy_stops_the_brokers_and_keeps_the_data",
        "e2e/test_docker_secure.py::test_destroy_removes_the_containers_and_keeps_the_data",
    ],
    "A second `make up` changes nothing, restarts nothing, and validates again": [
        "e2e/test_interrupts.py::test_up_twice_then_every_step_of_a_change_and_down",
        "e2e/test_docker_two_hosts.py::test_a_second_update_changes_nothing",
    ],
    "writes records to every broker through every listener, and reads them back": [
        "e2e/test_spark_validation.py::test_a_healthy_cluster_passes_in_every_pair_of_listeners",
    ],
    "A failed cell shows the stage that failed": [
        "e2e/test_spark_validation.py::test_a_dead_broker_fails_its_cells_and_only_those",
        "e2e/test_doctor.py::test_the_failure_of_the_seeds",
    ],
    "stops before it changes a broker": [
        "e2e/test_local_stack.py::test_a_bad_name_is_stopped_before_anything_is_touched",
        "e2e/test_local_stack.py::test_levels_of_the_configuration_count_at_the_gate",
    ],
    "The brokers that run keep running": [
        "e2e/test_local_stack.py::test_the_brokers_outlive_the_command_and_its_terminal",
        "e2e/test_local_stack.py::test_a_broker_that_does_not_come_up_is_put_back_as_it_was",
    ],
    "It checks brokers in `docker.Container` resources of any Pulumi program": [
        "e2e/test_container_policies.py::test_a_mistake_is_stopped_before_the_container_exists",
        "e2e/test_container_policies.py::test_the_kraft_file_of_many_a_team_passes_and_runs",
    ],
    "and their clients in the same program": [
        "e2e/test_container_policies.py::test_a_client_that_is_sent_to_itself_is_stopped",
    ],
    "# any cluster, from where you are": [
        "e2e/test_doctor.py::test_without_a_contract",
    ],
    "`make up` makes all steps, and proves every listener after each": [
        "e2e/test_local_stack.py::test_three_steps_each_proved_with_all_brokers_serving",
    ],
    "To revert the change, restore the old listeners in the file and run again": [
        "e2e/test_local_stack.py::test_three_steps_each_proved_with_all_brokers_serving",
        "e2e/test_local_stack.py::test_the_old_name_in_the_file_again_returns_after_an_interrupt",
    ],
    "prints the steps of the change beforehand": [
        "cli/test_steps.py::test_each_step_with_its_costs"
    ],
    "copies the template `local` (the name begins with it)": [
        "toolchain/test_stack.py::test_a_stack_without_a_file_gets_the_template_that_its_name_begins_with",
    ],
    "`stacks/`, for [containers]": [
        "e2e/test_docker_secure.py::test_every_listener_is_proved_from_where_its_clients_stand",
        "e2e/test_docker_secure.py::test_a_killed_container_starts_and_then_nothing_changes",
    ],
    "on one Docker host or several": [
        "e2e/test_docker_two_hosts.py::test_every_broker_is_reached_through_every_listener",
    ],
    "AWS support is tested on simulated AWS only": [
        "e2e/test_aws_stack.py::test_the_life_of_three_brokers_with_two_listeners",
        "e2e/test_user_data.py::test_a_broker_boots_serves_and_keeps_its_data",
    ],
    "the same with [TLS, users and ACLs](security.md)": [
        "e2e/test_local_secure.py::test_every_listener_is_proved_and_secured",
        "e2e/test_local_secure.py::test_a_user_may_do_what_its_prefixes_say_and_nothing_else",
        "e2e/test_local_secure.py::test_no_secret_is_anywhere_but_in_its_own_file",
    ],
    "one key turns on TLS, users and ACLs": [
        "e2e/test_docker_secure.py::test_every_listener_is_proved_from_where_its_clients_stand",
        "e2e/test_docker_secure.py::test_only_users_are_admitted",
    ],
    "can be made on `local`, on `aws`, and on `docker`": [
        "e2e/test_aws_secure.py::test_one_instance_is_replaced_for_users_and_none_for_another_checkout",
    ],
    "the next `make up` starts the brokers in the new location, with their data": [
        "e2e/test_local_broker.py::test_a_broker_keeps_its_data_wherever_its_directory_is",
    ],
    "`make up` removes the one that its own run wrote": [
        "toolchain/test_stack.py::test_a_salt_is_removed_and_the_file_keeps_its_mode_and_link",
    ],
    "looks the names up and applies the rules, as the gate will": [
        "cli/test_plan.py::test_a_name_that_does_not_resolve_ends_with_1",
    ],
    "writes a record to every broker through every listener, and reads it": [
        "e2e/test_doctor.py::test_a_healthy_cluster",
        "e2e/test_doctor.py::test_a_killed_broker_fails_its_own_cells_only",
    ],
    "and replication between brokers": [
        "e2e/test_spark_validation.py::test_a_broken_way_between_brokers_fails_though_clients_reach_them_all",
    ],
    "the client properties of a user of a [secured stack]": [
        "e2e/test_local_secure.py::test_the_outputs_say_how_a_user_comes_in_by_each_listener",
        "e2e/test_local_secure.py::test_a_user_without_permission_is_told_what_it_lacks",
    ],
    "several reports become one": ["report/test_merge.py"],
    "with a short file that breaks it and the corrected file": [
        "rules/test_examples.py::test_every_rule_has_examples_that_pass_and_that_fail",
    ],
    "It reports to CI as SARIF, JUnit, Markdown or annotations of GitHub": ["lint/test_formats.py"],
    "creates a stack file from a Compose file or a `server.properties`, and reports the mistakes": [
        "adopt/test_command.py::test_a_mistake_is_1_and_the_file_is_written",
    ],
    "inconclusive: something was skipped": [
        "cli/test_validate.py::test_the_exit_code_is_the_verdict",
        "e2e/test_spark_validation.py::test_a_deadline_that_is_too_short_proves_nothing",
    ],
    "A run that checks nothing does not pass": [
        "cli/test_validate.py::test_an_address_that_named_no_broker_does_not_pass",
    ],
    "`import earshot` works without Pulumi": [
        "test_api.py::test_the_example_runs",
    ],
    "Kafka 3.9 and 4.x": ["judge/test_judge.py"],
    "The same pack runs [in CI]": [
        "e2e/test_policy_ci.py::test_a_foreign_program_is_deployed_through_the_pack",
    ],
    "A vantage is the place where a client runs: this machine, Spark's executors": [
        "e2e/test_spark_cluster.py::test_an_executor_that_cannot_resolve_is_named_and_only_its_cells_fail",
    ],
}
"""Tests below `tests/`, by words of a page; a file without a test means all of its tests."""


@pytest.mark.parametrize("words", PROMISES)
def test_a_page_promises_it(words: str) -> None:
    assert any(words in " ".join((ROOT / page).read_text().split()) for page in PAGES)


@pytest.mark.parametrize("test", sorted({test for tests in PROMISES.values() for test in tests}))
def test_what_proves_it_is_in_make_test(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / "tests" / file).read_text())
    all_marks = [marks for test_name, marks in marked_tests(tree) if name in ("", test_name)]
    assert all_marks, f"tests/{file} has no test {name}"
    assert any(COMBINATION not in marks for marks in all_marks)


def marked_tests(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each test's name and its marks as text, without those of single parameters."""
    file_marks = "".join(
        ast.unparse(statement.value)
        for statement in tree.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark"
    )
    scopes: list[tuple[str, list[ast.stmt]]] = [(file_marks, tree.body)]
    for marks, body in scopes:
        for statement in body:
            if isinstance(statement, ast.ClassDef):
                scopes.append((marks + _marks(statement), statement.body))
            elif isinstance(statement, ast.FunctionDef) and statement.name.startswith("test_"):
                yield statement.name, marks + _marks(statement)


def _marks(definition: ast.ClassDef | ast.FunctionDef) -> str:
    decorators = map(ast.unparse, definition.decorator_list)
    return "".join(decorator for decorator in decorators if "parametrize" not in decorator)
