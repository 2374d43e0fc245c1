import resource

from earshot.files.open_files import raise_limit


def test_the_limit_of_open_files_is_raised_as_far_as_it_may_be() -> None:
    old_limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, old_limits[1]))
        assert raise_limit(100) == 512
        assert raise_limit(600) == 600 == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old_limits)
