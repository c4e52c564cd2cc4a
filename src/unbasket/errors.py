"""Every error that the package raises on purpose. Each message carries the offending value and what to do."""


class UnbasketError(Exception):
    """Base of all errors of this package."""


class InvalidParamsError(UnbasketError, ValueError):
    """A model parameter is out of its range."""


class InvalidIdError(UnbasketError, ValueError):
    """A user, basket or item id is not a non-empty str or a 64-bit int."""


class InvalidBasketError(UnbasketError, ValueError):
    """A basket has no items, too many items, or a time that is not a 64-bit integer."""


class InvalidFrameError(UnbasketError, ValueError):
    """A data frame lacks a column or holds values that are not purchases."""


class InvalidRequestError(UnbasketError, ValueError):
    """A question that has no answer, such as the -1 best items."""


class UnknownUserError(UnbasketError, LookupError):
    """Nothing is held of this user."""
