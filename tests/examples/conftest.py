"""One service for all examples."""

import pytest
from service import Service


@pytest.fixture(scope="session")
def service():
    # A quick market, so that a recording of seconds has enough rows.
    service = Service("fix.listen=127.0.0.1:0", "feed.rate=500").start()
    yield service
    service.remove()
