"""The requests and answers of the API, checked and documented by pydantic."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, RootModel, StrictInt, StrictStr, ValidationError, model_validator

from ramify.serve.problems import Problem
from ramify.serve.settings import Settings

MAX_TOP_K = 1000
MAX_LABELS = 1000
# Labels of an answer: rows times `top_k`, or rows times `labels`.
MAX_ANSWERS = 100_000

LabelText = Annotated[StrictStr, Field(min_length=1, max_length=1000)]
LabelNumber = Annotated[StrictInt, Field(ge=0, lt=2**31 - 1)]
Label = LabelText | LabelNumber
Labels = Annotated[list[Label], Field(max_length=MAX_LABELS)]
_LARGEST = 3.4028234663852886e38  # of a float32, which models hold
Value = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]
Features = dict[str, Value]


class Request(BaseModel):
    """Nothing is guessed: `"5"` and `true` are no numbers, and an unknown field is a mistake."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PredictRequest(Request):
    """Rows to predict: `texts`, or `features` as objects name -> value."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"texts": ["acute chest pain", "kidney stone"], "top_k": 5}]}
    )
    texts: list[StrictStr] | None = None
    features: list[Features] | None = None
    top_k: Annotated[int, Field(ge=1, le=MAX_TOP_K, description="Most labels per row.")] | None = None
    threshold: Annotated[float, Field(ge=0, le=1, description="Least probability of a label.")] | None = None
    labels: Annotated[Labels, Field(min_length=1, description="Exactly these labels.")] | None = None
    fresh: bool = Field(False, description="Ask the live model, after everything acknowledged so far was learned.")

    @model_validator(mode="after")
    def _one_kind_of_rows(self) -> PredictRequest:
        if (self.texts is None) == (self.features is None):
            raise ValueError("give either `texts` or `features`")
        if self.top_k is None and self.labels is None:
            self.top_k = 5
        return self


class PredictedLabel(BaseModel):
    label: str | int
    probability: float
    name: str | None = Field(None, description="What people call the label, if the model has names.")


class PredictedRow(BaseModel):
    labels: list[PredictedLabel]


class PredictResponse(BaseModel):
    """One result per row, labels best first; `version` is the last example that the answering model has learned."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"results": [{"labels": [{"label": "R07.9", "probability": 0.81}]}], "version": 1200}]
        }
    )
    results: list[PredictedRow]
    version: int


class ExplainRequest(Request):
    """One row, and the label to explain; without one the most probable label."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "acute chest pain", "label": "R07.9"}]})
    text: StrictStr | None = None
    features: Features | None = None
    label: Label | None = None
    top: Annotated[int, Field(ge=1, le=50, description="Features to name at each step.")] = 5
    fresh: bool = False

    @model_validator(mode="after")
    def _one_row(self) -> ExplainRequest:
        if (self.text is None) == (self.features is None):
            raise ValueError("give either `text` or `features`")
        return self


class Span(BaseModel):
    start: int
    end: int
    weight: float


class ExplainResponse(BaseModel):
    """The explanation of the model, and the parts of the text that speak for (above zero) or against the label."""

    explanation: dict[str, Any]
    spans: list[Span]
    version: int


class Example(Request):
    """A row with all its labels."""

    text: StrictStr | None = None
    features: Features | None = None
    labels: Labels
    sure: (
        Annotated[
            float,
            Field(gt=0, lt=1, description="Learn it until each label is this probable, at most 30 times."),
        ]
        | None
    ) = None

    @model_validator(mode="after")
    def _one_row(self) -> Example:
        if (self.text is None) == (self.features is None):
            raise ValueError("an example has either `text` or `features`")
        return self

    def content(self) -> dict[str, Any]:
        """What the journal holds."""
        content: dict[str, Any] = {"text": self.text} if self.features is None else {"features": self.features}
        content["labels"] = list(dict.fromkeys(self.labels))
        return content if self.sure is None else content | {"sure": self.sure}


class LearnRequest(Request):
    """Examples to learn, in their order."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"examples": [{"text": "acute chest pain", "labels": ["R07.9"]}]}]},
    )
    examples: Annotated[list[Example], Field(min_length=1)]


class AnnifSubject(BaseModel):
    model_config = ConfigDict(extra="ignore")
    uri: LabelText
    label: str | None = None


class AnnifExample(BaseModel):
    text: str
    subjects: Annotated[list[AnnifSubject], Field(max_length=MAX_LABELS)]


class AnnifExamples(RootModel[list[AnnifExample]]):
    """Indexed documents to learn."""


class LearnResponse(BaseModel):
    """The examples are on the disk. Answers with at least this `version` know them."""

    n_examples: int
    version: int
    duplicate: bool = Field(description="Whether an earlier request with the same Idempotency-Key had brought them.")


class LabelEntry(BaseModel):
    label: str | int
    name: str = ""
    n_examples: int | None = Field(None, description="Examples taught with this label; null if the model cannot learn.")


class LabelsResponse(BaseModel):
    labels: list[LabelEntry]
    n_labels: int
    version: int


class TreeResponse(BaseModel):
    """A node, the path from the root to it, and its children."""

    model_config = ConfigDict(extra="allow")
    node: int
    n_labels: int
    n_children: int
    path: list[int]
    children: list[dict[str, Any]]
    version: int


class LearningWait(BaseModel):
    """How long a prediction (not a fresh one) may wait for learning, and the longest wait of the answering process."""

    bound_seconds: float
    longest_seconds: float


class ProgressResponse(BaseModel):
    """Progressive validation: every request was tested just before it was learned."""

    model_config = ConfigDict(extra="allow")
    n_examples: int = Field(description="Examples acknowledged, those of the model before it was served included.")
    n_labels: int
    n_learned: int
    version: int
    learns: bool
    learning_wait: LearningWait


class ProblemResponse(BaseModel):
    """Problem details (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    where: str | None = None
    retry_after: int | None = None


Model = TypeVar("Model", bound=BaseModel)


def parse(model: type[Model], body: bytes) -> Model:
    """The checked content of a body; a Problem names the first thing that is wrong, and where."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise _problem(error) from None


def _problem(error: ValidationError) -> Problem:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        return Problem(400, f"the body is not JSON: {first['msg'].removeprefix('Invalid JSON: ')}", where="body")
    parts = [f"[{part}]" if isinstance(part, int) else f".{part[:60]}" for part in first["loc"]]
    where = "".join(part for part in parts if not part.startswith((".constrained", ".str", ".int"))).lstrip(".")
    return Problem(422, first["msg"].removeprefix("Value error, "), where=where or "body")


def check_answers(n_rows: int, per_row: int) -> None:
    """Reject a request whose answer would be too large."""
    if n_rows * per_row > MAX_ANSWERS:
        raise Problem(
            413,
            f"an answer has at most {MAX_ANSWERS:,} labels, and {n_rows:,} rows of {per_row:,} are more: "
            "send fewer rows, or ask for fewer labels",
            where="top_k",
        )


def check_rows(texts: list[str] | None, n_rows: int, settings: Settings, where: str = "texts") -> None:
    """Reject more or longer rows than the service takes."""
    if n_rows > settings.max_rows:
        raise Problem(
            413,
            f"a request has at most {settings.max_rows:,} rows, got {n_rows:,}: use the bulk endpoints",
            where=where,
        )
    for position, text in enumerate(texts or []):
        if len(text) > settings.max_text:
            raise Problem(
                413,
                f"a text has at most {settings.max_text:,} characters, got {len(text):,}",
                where=f"{where}[{position}]",
            )
