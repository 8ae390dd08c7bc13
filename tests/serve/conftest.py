from pathlib import Path

import pytest

from support.service import Service


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One service for the tests of a module; each uses models of its own."""
    service = Service(tmp_path_factory.mktemp("serve") / "store")
    yield service
    service.stop()


@pytest.fixture
def started(tmp_path):
    """Starts services, and stops them."""
    services = []

    def start(*options, store: Path = tmp_path / "store", **more):
        services.append(Service(store, *options, **more))
        return services[-1]

    yield start
    for service in services:
        service.stop()


@pytest.fixture
def model(shared, request):
    """The name of a new model."""
    name = request.node.name.replace("[", "-").replace("]", "")[:90]
    assert shared.request("PUT", f"/models/{name}", {})[0] == 201
    return name
