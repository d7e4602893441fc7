"""What the caller of `read` asks for, apart from the path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from topnrank.data.frames import Columns, resolve_columns
from topnrank.errors import DataError, ParameterError


@dataclass(frozen=True)
class Request:
    """Columns by role, each given by name or by position from 0 or not at all, and the layout of text files."""

    roles: Mapping[str, str | int | None]
    separator: str | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and (not self.separator or set(self.separator) & set('"\r\n')):
            raise ParameterError(
                f"separator must be text without quotes and line ends such as ',' or '::', got {self.separator!r}"
            )

    def resolve(self, names: Sequence[str], source: str) -> Columns:
        """The columns to use among the `names` of `source`."""
        given: dict[str, str | None] = {}
        for role, asked in self.roles.items():
            position = _position(names, asked)
            if position is not None and not 0 <= position < len(names):
                raise DataError(
                    f"{source}: {role}={position} is not the position of a column; there are {len(names)}, counted from 0"
                )
            given[role] = names[position] if position is not None else None if asked is None else str(asked)
        return resolve_columns(names, given, source=source)

    def has_positions(self, names: Sequence[str]) -> bool:
        """Whether some column is given by its position among `names`."""
        return any(_position(names, asked) is not None for asked in self.roles.values())

    def has_roles(self) -> bool:
        """Whether some column is given at all."""
        return any(asked is not None for asked in self.roles.values())


def _position(names: Sequence[str], asked: str | int | None) -> int | None:
    """`asked` as a column number; text of digits counts as one (command lines have no integers) unless it is a name."""
    if isinstance(asked, str) and (asked in names or not asked.isdecimal()):
        return None
    return None if asked is None else int(asked)
