"""Annif's own client, unchanged, against the service."""

from __future__ import annotations

import pytest
from annif_client import AnnifClient

from shared.serving import served

SUBJECTS = {"http://example.org/cats": "cats", "http://example.org/dogs": "dogs"}


@pytest.fixture(scope="module")
def annif(tmp_path_factory):
    with served(tmp_path_factory.mktemp("annif") / "pets-en", "--publish-seconds", "0.02") as service:
        client = AnnifClient(service.address + "v1/")
        documents = [
            {"text": "the cat purrs", "subjects": [{"uri": "http://example.org/cats", "label": "cats"}]},
            {"text": "the dog barks", "subjects": [{"uri": "http://example.org/dogs", "label": "dogs"}]},
        ]
        assert client.learn("pets-en", documents * 10).status_code == 204
        service.wait_for_version(20)
        yield client


def test_the_api_and_its_projects_are_described(annif):
    assert annif.api_info["version"]
    assert [project["project_id"] for project in annif.projects] == ["pets-en"]
    project = annif.get_project("pets-en")
    assert project["is_trained"] is True
    assert project["backend"]["backend_id"] == "ramify"


def test_an_unknown_project_is_named(annif):
    with pytest.raises(ValueError, match="'none' not found"):
        annif.get_project("none")
    with pytest.raises(ValueError, match="not found"):
        annif.suggest("none", "text")


def test_subjects_are_suggested(annif):
    results = annif.suggest("pets-en", "a cat on the mat", limit=1)
    assert [result["uri"] for result in results] == ["http://example.org/cats"]
    assert set(results[0]) == {"uri", "label", "notation", "score"}
    assert all(result["score"] >= 0.5 for result in annif.suggest("pets-en", "a dog", threshold=0.5))


def test_subjects_are_suggested_in_batches(annif):
    documents = [{"text": "purrs", "document_id": "1"}, {"text": "barks", "document_id": "2"}]
    results = annif.suggest_batch("pets-en", documents, limit=1)
    assert [(one["document_id"], one["results"][0]["uri"]) for one in results] == [
        ("1", "http://example.org/cats"),
        ("2", "http://example.org/dogs"),
    ]
