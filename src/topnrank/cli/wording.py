"""Messages of the library in the words of the command line: options in the place of Python's arguments."""

import re
from functools import cache

_OWN_OPTIONS = {"num_threads": "threads", "exclude_seen": "keep-seen", "min_user_items": "min-user-items"}
"""Options that have another name than the argument."""
_OPTIONS = (
    *("user", "item", "rating", "type", "weight", "timestamp", "format", "separator", "header", "duplicates", "ties"),
    *(
        "task",
        "protocol",
        "feedback",
        "relevant",
        "unknown",
        "unknown_items",
        "min_user_items",
        "min_item_users",
        "seed",
    ),
    *("num_threads", "engine", "validation", "patience", "checkpoint", "repeats", "jobs", "folder", "min_score"),
)
_VALUE = r"'[^']*'|-?\d+(?:\.\d+)?(?:e-?\d+)?|True|False|None|\.\.\."
_WHOLE = (
    ("TopNRank(task='catalog')", "--task catalog"),
    ("keep_order=True", "--keep-order"),
    ("header=True", "--header"),
    ("header=False", "--no-header"),
    ("relevant=None", "--relevant all"),
    ("set relevant ", "set --relevant "),
    (", or in Python with exclude_seen=False", ""),
    ("set_params(feedback=...)", "--feedback"),
    ("feedback=EventWeights(...)", "--feedback events:TYPE=WEIGHT,..."),
    ("filter(min_item_users=...)", "--min-item-users"),
    ("give model.weigh(test), which weighs them as in training, or ", "give "),
)


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """An argument that is an option, and one that is a hyper-parameter; never within quotes or names."""
    from topnrank.models.registry import MODELS

    names = {name for kind in MODELS.values() for name in kind().get_params()} - {*_OPTIONS}
    options, settings = (
        re.compile(rf"(?<![\w'\"./-])({'|'.join(sorted(some, key=len, reverse=True))})=({_VALUE})")
        for some in (_OPTIONS, names)
    )
    return options, settings


def as_options(message: str) -> str:
    """A message with its remedies as they are typed: `item='...'` becomes `--item '...'`, `epochs=5` `--set epochs=5`."""
    for python, typed in _WHOLE:
        message = message.replace(python, typed)
    message = re.sub(r"EventWeights\(\{(.*?)\}\)(\(data\))?", _event_weights, message)
    message = re.sub(r"^(?:[A-Z]\w+)\.(\w+) must be", r"--set \1 must be", message)
    message = re.sub(rf"^({'|'.join(_OPTIONS)}) must be", lambda found: f"--{_name(found[1])} must be", message)
    message = message.replace("groups and max_per_group", "--groups and --max-per-group")
    if "=" not in message:
        return message
    options, settings = _patterns()
    fact, semicolon, rest = message.partition("; ")  # what is wrong is told in the user's words, then what to do
    if not semicolon:
        fact, rest = "", message
    rest = options.sub(lambda found: f"--{_name(found[1])} {_plain(found[2])}", rest)
    return fact + semicolon + settings.sub(lambda found: f"--set {found[1]}={_plain(found[2])}", rest)


def _name(argument: str) -> str:
    return _OWN_OPTIONS.get(argument, argument.replace("_", "-"))


def _event_weights(found: "re.Match[str]") -> str:
    pairs = (pair.partition(":") for pair in found[1].split(", "))
    return "--feedback events:" + ",".join(f"{_plain(name)}={weight.strip()}" for name, _, weight in pairs)


def _plain(value: str) -> str:
    """A value as it is typed: without quotes where it has no blanks."""
    bare = value[1:-1] if value[:1] == "'" else value
    return bare if bare and " " not in bare and bare != "..." else value
