"""Types that users of agent libraries put into pydantic's models, and the keyword of each one's JSON schema that cannot be enforced.

Imported by the CI test (generators_test.py) and by the checks of clients (tests/clients), each in an environment of its own: pydantic is all that it needs.
"""

import collections
import dataclasses
import datetime
import decimal
import enum
import ipaddress
import pathlib
import typing
import uuid

import pydantic
import typing_extensions


class Color(enum.Enum):
    red = "red"
    green = "green"


class Cat(pydantic.BaseModel):
    kind: typing.Literal["cat"]
    n: typing.Annotated[int, pydantic.Field(ge=0, le=9)]


class Dog(pydantic.BaseModel):
    kind: typing.Literal["dog"] = "dog"
    b: bool


class Tree(pydantic.BaseModel):
    v: bool
    kids: typing.Annotated[list["Tree"], pydantic.Field(max_length=1)] = []


class Typed(typing_extensions.TypedDict):
    a: int


@dataclasses.dataclass
class Data:
    x: int


class Named(typing.NamedTuple):
    a: int
    b: bool


Short = typing.Annotated[str, pydantic.StringConstraints(max_length=4)]
# A tuple has the keyword that cannot be enforced.
TYPES = {
    "Decimal": decimal.Decimal, "datetime": datetime.datetime, "date": datetime.date, "time": datetime.time, "timedelta": datetime.timedelta, "UUID": uuid.UUID, "Path": pathlib.Path,
    "bytes": bytes, "SecretStr": pydantic.SecretStr, "AnyUrl": pydantic.AnyUrl, "IPv4": ipaddress.IPv4Address, "IPv6": ipaddress.IPv6Address, "set": (set[int], "uniqueItems"),
    "frozenset": (frozenset[Short], "uniqueItems"), "tuple": tuple[int, Short], "tuple of any length": tuple[bool, ...], "dict": dict[str, bool], "dict of int": dict[int, bool],
    "dict of names": (dict[typing.Literal["a", "b"], bool], "propertyNames"), "Enum": Color, "Literal": typing.Literal["a", 1, None], "Optional": typing.Optional[Short], "int or str": int | Short,
    "union by tag": typing.Annotated[Cat | Dog, pydantic.Field(discriminator="kind")], "union": Cat | Dog, "recursive": Tree, "TypedDict": Typed, "dataclass": Data, "NamedTuple": Named,
    "list of models": typing.Annotated[list[Cat], pydantic.Field(max_length=2)], "deque": collections.deque[bool], "positive": pydantic.PositiveInt, "bounded float": typing.Annotated[float, pydantic.Field(gt=0, lt=1)],
    "multiple": typing.Annotated[int, pydantic.Field(multiple_of=5)], "pattern": typing.Annotated[str, pydantic.StringConstraints(pattern=r"^[a-z]{2,4}$")], "Json": pydantic.Json, "Any": typing.Any,
    "int": int, "Base64": pydantic.Base64Bytes, "float": float,
}
# Their schemas accept strings that the types refuse: any string, or one that is too large; keys that are no numbers.
LOOSE = ("Decimal", "timedelta", "AnyUrl", "dict of int", "Json")


def cases():
    """Yields (name, type, keyword that cannot be enforced or None)."""
    for name, given in TYPES.items():
        yield (name, *given) if isinstance(given, tuple) else (name, given, None)


def model(kind):
    """A model whose only member, `value`, is of the type."""
    return pydantic.create_model("M", value=(kind, ...))
