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
        given = {role: None if asked is None else str(asked) for role, asked in self.roles.items()}
        for role, position in self.positions(names).items():
            if not 0 <= position < len(names):
                raise DataError(
                    f"{source}: {role}={position} is not the position of a column; there are {len(names)}, counted from 0"
                )
            given[role] = names[position]
        return resolve_columns(names, given, source=source)

    def positions(self, names: Sequence[str]) -> dict[str, int]:
        """The columns given by position, by role; text of digits is one (command lines have no integers) unless a name."""
        return {
            role: int(asked)
            for role, asked in self.roles.items()
            if asked is not None and not (isinstance(asked, str) and (asked in names or not asked.isdecimal()))
        }

    def has_roles(self) -> bool:
        """Whether some column is given at all."""
        return any(asked is not None for asked in self.roles.values())
