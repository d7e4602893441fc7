"""The exceptions of topnrank.

Every error a caller can cause is one clear sentence: what is wrong, where (file, row, column, parameter), which rule it
breaks, the value found, and what to do.

    TopNRankError
    ├── InputError (also ValueError)      the caller can fix it; exit code 2 on the command line
    │   ├── DataError                     a file, frame or array of interactions
    │   ├── ParameterError                a hyper-parameter or an argument
    │   ├── UnknownIdError                a user or item the model does not know
    │   ├── ModelFileError                a model or checkpoint file
    │   ├── OutputError                   a path that cannot be written
    │   │   └── DiskError                 what happens while it is written: no space, a broken disk; exit code 1
    │   └── StorageError                  a remote file system that cannot be reached or refuses
    ├── NotFittedError                    a model used before `fit`
    ├── OutOfMemoryError (MemoryError)    what is asked for does not fit into memory; exit code 1
    └── DivergenceError                   numbers in training are not finite; exit code 1
"""


class TopNRankError(Exception):
    """Base of all errors that topnrank raises on purpose."""


class InputError(TopNRankError, ValueError):
    """An input of the caller is wrong; the message tells how to fix it."""


class DataError(InputError):
    """A file, frame or array of interactions breaks a rule."""


class ParameterError(InputError):
    """A hyper-parameter or argument breaks a rule."""


class UnknownIdError(InputError):
    """A user or item id that the model does not know."""


class ModelFileError(InputError):
    """A model or checkpoint file is missing, broken, foreign or of another version."""


class OutputError(InputError):
    """A path that cannot be written: no permission, no such folder."""


class DiskError(OutputError):
    """The disk is full or fails, or a permission was lost, while something is written; what was there before stays."""


class StorageError(InputError):
    """A remote file system (hdfs://, s3://) cannot be reached, or refuses."""


class TopNRankWarning(UserWarning):
    """Something that a user should know, although the call goes on."""


class OutOfMemoryError(TopNRankError, MemoryError):
    """What is asked for takes more memory than this process can have, as its sizes tell before the work begins."""


class NotFittedError(TopNRankError):
    """A model was used before `fit`."""


class DivergenceError(TopNRankError):
    """Training produced numbers that are not finite."""
