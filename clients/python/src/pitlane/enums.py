"""Enumerations of the service. Each member is a string, so that `Side.BUY == "BUY"`."""

from enum import Enum


class StringEnum(str, Enum):
    """Base class: a string from a closed list, printed as in JSON."""

    def __str__(self) -> str:
        return str(self.value)


class SwitchState(StringEnum):
    """Whether a switch is on, or a change applied, in all, some or no shards."""

    ALL = "ALL"
    SOME = "SOME"
    NONE = "NONE"


class Side(StringEnum):
    BUY = "BUY"
    SELL = "SELL"

    @property
    def opposite(self) -> "Side":
        return Side.SELL if self is Side.BUY else Side.BUY


class OrderType(StringEnum):
    MARKET = "MARKET"
    LIMIT = "LIMIT"
    STOP = "STOP"
    STOP_LIMIT = "STOP_LIMIT"


class TimeInForce(StringEnum):
    DAY = "DAY"
    GTC = "GTC"
    ATO = "ATO"
    IOC = "IOC"
    FOK = "FOK"
    GTD = "GTD"
    ATC = "ATC"


class OrderStatus(StringEnum):
    PENDING_NEW = "PENDING_NEW"
    NEW = "NEW"
    PARTIALLY_FILLED = "PARTIALLY_FILLED"
    FILLED = "FILLED"
    PENDING_CANCEL = "PENDING_CANCEL"
    CANCELED = "CANCELED"
    PENDING_REPLACE = "PENDING_REPLACE"
    REJECTED = "REJECTED"
    EXPIRED = "EXPIRED"

    @property
    def is_finished(self) -> bool:
        return self in _FINISHED


_FINISHED = frozenset({OrderStatus.FILLED, OrderStatus.CANCELED, OrderStatus.REJECTED, OrderStatus.EXPIRED})


class ExecType(StringEnum):
    """The kind of a change of an order."""

    PENDING_NEW = "PENDING_NEW"
    NEW = "NEW"
    REJECTED = "REJECTED"
    TRADE = "TRADE"
    PENDING_CANCEL = "PENDING_CANCEL"
    CANCELED = "CANCELED"
    EXPIRED = "EXPIRED"
    PENDING_REPLACE = "PENDING_REPLACE"
    REPLACED = "REPLACED"
    TRIGGERED = "TRIGGERED"
    TRADE_CORRECT = "TRADE_CORRECT"
    ORDER_STATUS = "ORDER_STATUS"
    # Only in the changes of an order: a request was refused.
    CANCEL_REJECTED = "CANCEL_REJECTED"
    REPLACE_REJECTED = "REPLACE_REJECTED"


class SecurityType(StringEnum):
    STOCK = "STOCK"
    FUTURE = "FUTURE"
    OPTION = "OPTION"
    FOREX = "FOREX"
    INDEX = "INDEX"
    COMMODITY = "COMMODITY"
    BOND = "BOND"
    FUND = "FUND"
    CRYPTO = "CRYPTO"


class OptionType(StringEnum):
    CALL = "CALL"
    PUT = "PUT"


class TransactionType(StringEnum):
    BUY = "BUY"
    SELL = "SELL"
    EXPIRATION = "EXPIRATION"
    CREDIT = "CREDIT"
    DEBIT = "DEBIT"
    INTEREST = "INTEREST"
    FEES = "FEES"
    REFUND = "REFUND"
    REBALANCE = "REBALANCE"


class Phase(StringEnum):
    """The phase of a strategy in its lifecycle."""

    INIT = "INIT"
    PREFEED = "PREFEED"
    START = "START"
    RUNNING = "RUNNING"
    STOP = "STOP"
    EXIT = "EXIT"


class Mode(StringEnum):
    REAL_TIME = "REAL_TIME"
    SIMULATION = "SIMULATION"


class Role(StringEnum):
    """The role of a login. Each role includes the permissions of the previous one."""

    READ = "read"
    TRADE = "trade"
    ADMIN = "admin"
