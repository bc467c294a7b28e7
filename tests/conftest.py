"""Settings shared by all tests."""

import gc
import signal

import pytest
from hypothesis import settings

from frequency_classifier import FrequencyClassifier
from model_files import X, Y
from ramify import registry

# A busy machine is no failure, so examples have no time limit.
settings.register_profile("ramify", deadline=None)
settings.load_profile("ramify")

# A shell that starts the tests in the background lets them ignore Ctrl-C, and so would every process they start to see
# how it takes one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Modules and tests stay until the end: looking through them for garbage again and again would take a tenth of the time.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def frequency_models_load(monkeypatch):
    """Only ramify's own classes are loaded from files; this lets the tests' small one be loaded too."""
    entry = registry.Entry("frequency_classifier", "FrequencyModel", "", "for tests")
    monkeypatch.setitem(registry.CLASSIFIERS, "FrequencyClassifier", entry)


@pytest.fixture
def saved(tmp_path):
    FrequencyClassifier().fit(X, Y).save(tmp_path / "model")
    return tmp_path / "model"


def pytest_terminal_summary(terminalreporter):
    """Say loudly what was not tested for lack of a program."""
    untested = {
        report.longrepr[2]
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and "NOT TESTED" in report.longrepr[2]
    }
    for reason in sorted(untested):
        terminalreporter.write_sep("!", reason.removeprefix("Skipped: "), red=True, bold=True)
