from __future__ import annotations

from earshot.sources.quadlet import read_units


def test_the_default_name_and_mounts_in_the_container() -> None:
    unit = "[Container]\nImage=app\nVolume=/etc/app:/config:ro\nVolume=/data\n"
    (service,) = read_units({"app.container": unit})
    assert service.container.unknown == ()
    (member,) = read_units({"app.container": unit + "Pod=elsewhere.pod\n"})
    assert member.container.unknown == ("the pod",)
    assert (service.name, service.container.mounts) == ("systemd-app", ("/config", "/data"))
