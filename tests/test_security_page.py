"""SECURITY.md lists each process that a test can recognize by its sockets, and no other."""

from tests.e2e.open_sockets import PROCESSES, documented_addresses


def test_the_table_of_sockets_has_the_processes_that_tests_recognize() -> None:
    assert documented_addresses().keys() == PROCESSES.keys()
