// Made by `clients/sbe/generate.py` from `docs/sbe/pitlane.xml`. C++17.
//
//     pitlane::Reader reader(body, size);
//     while (reader.next()) {
//         if (reader.template_id() == pitlane::Tick::template_id) {
//             pitlane::Tick tick(reader);
//         }
//     }
//
// A message that is cut short, or of another schema, throws std::runtime_error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace pitlane {

// A decimal as a number of units of 10^-8.
struct Decimal {
    std::int64_t mantissa;
};

namespace detail {

template <typename T>
T read(const char *at) {
    T value = 0;
    for (std::size_t octet = sizeof(T); octet-- > 0;) {
        value = static_cast<T>(static_cast<std::uint64_t>(value) << 8 | static_cast<unsigned char>(at[octet]));
    }
    return value;
}

inline std::optional<Decimal> optional(std::int64_t mantissa) {
    if (mantissa == INT64_MIN) {
        return std::nullopt;
    }
    return Decimal{mantissa};
}

}  // namespace detail

// Entries of a repeating group.
template <typename Entry>
class Group {
  public:
    Group() = default;
    Group(const char *first, std::size_t stride, std::size_t count)
        : first_(first), stride_(stride), count_(count) {}
    std::size_t size() const { return count_; }
    Entry operator[](std::size_t at) const { return Entry(first_ + at * stride_); }

  private:
    const char *first_ = nullptr;
    std::size_t stride_ = 0;
    std::size_t count_ = 0;
};

// Walks over the messages of a body.
class Reader {
  public:
    Reader(const char *body, std::size_t size) : at_(body), end_(body + size) {}

    // Reads the next header. Returns false at the end of the body. The message that it announces must be
    // read before the next call.
    bool next() {
        if (at_ == end_) {
            return false;
        }
        const char *header = take(8);
        block_length_ = detail::read<std::uint16_t>(header);
        template_id_ = detail::read<std::uint16_t>(header + 2);
        if (detail::read<std::uint16_t>(header + 4) != SCHEMA_ID) {
            throw std::runtime_error("another schema");
        }
        return true;
    }

    std::uint16_t template_id() const { return template_id_; }

    const char *block(std::size_t length) {
        if (block_length_ < length) {
            throw std::runtime_error("a block is too short");
        }
        return take(block_length_);
    }

    template <typename Entry>
    Group<Entry> group() {
        const char *head = take(4);
        const std::size_t stride = detail::read<std::uint16_t>(head);
        const std::size_t count = detail::read<std::uint16_t>(head + 2);
        if (count > 0 && stride < Entry::block_length) {
            throw std::runtime_error("an entry is too short");
        }
        return Group<Entry>(take(stride * count), stride, count);
    }

    std::string_view text() {
        const std::size_t length = detail::read<std::uint16_t>(take(2));
        return std::string_view(take(length), length);
    }

  private:
    static constexpr std::uint16_t SCHEMA_ID = 1;

    const char *take(std::size_t size) {
        if (static_cast<std::size_t>(end_ - at_) < size) {
            throw std::runtime_error("a message is cut short");
        }
        const char *taken = at_;
        at_ += size;
        return taken;
    }

    const char *at_;
    const char *end_;
    std::uint16_t block_length_ = 0;
    std::uint16_t template_id_ = 0;
};

enum class BookSide : std::uint8_t {
    B = 0,
    A = 1,
};

inline const char *name_of(BookSide value) {
    switch (value) {
        case BookSide::B: return "B";
        case BookSide::A: return "A";
    }
    return "";
}

enum class Side : std::uint8_t {
    BUY = 0,
    SELL = 1,
};

inline const char *name_of(Side value) {
    switch (value) {
        case Side::BUY: return "BUY";
        case Side::SELL: return "SELL";
    }
    return "";
}

enum class OrderAction : std::uint8_t {
    ADD = 0,
    CHANGE = 1,
    REMOVE = 2,
    TRADE = 3,
};

inline const char *name_of(OrderAction value) {
    switch (value) {
        case OrderAction::ADD: return "ADD";
        case OrderAction::CHANGE: return "CHANGE";
        case OrderAction::REMOVE: return "REMOVE";
        case OrderAction::TRADE: return "TRADE";
    }
    return "";
}

enum class TradingSession : std::uint8_t {
    CLOSED = 0,
    OPENING_AUCTION = 1,
    CONTINUOUS = 2,
    CLOSING_AUCTION = 3,
};

inline const char *name_of(TradingSession value) {
    switch (value) {
        case TradingSession::CLOSED: return "CLOSED";
        case TradingSession::OPENING_AUCTION: return "OPENING_AUCTION";
        case TradingSession::CONTINUOUS: return "CONTINUOUS";
        case TradingSession::CLOSING_AUCTION: return "CLOSING_AUCTION";
    }
    return "";
}

enum class Status : std::uint8_t {
    PENDING_NEW = 0,
    NEW = 1,
    PARTIALLY_FILLED = 2,
    FILLED = 3,
    PENDING_CANCEL = 4,
    CANCELED = 5,
    PENDING_REPLACE = 6,
    REJECTED = 7,
    EXPIRED = 8,
};

inline const char *name_of(Status value) {
    switch (value) {
        case Status::PENDING_NEW: return "PENDING_NEW";
        case Status::NEW: return "NEW";
        case Status::PARTIALLY_FILLED: return "PARTIALLY_FILLED";
        case Status::FILLED: return "FILLED";
        case Status::PENDING_CANCEL: return "PENDING_CANCEL";
        case Status::CANCELED: return "CANCELED";
        case Status::PENDING_REPLACE: return "PENDING_REPLACE";
        case Status::REJECTED: return "REJECTED";
        case Status::EXPIRED: return "EXPIRED";
    }
    return "";
}

enum class ExecType : std::uint8_t {
    PENDING_NEW = 0,
    REJECTED = 1,
    NEW = 2,
    TRADE = 3,
    PENDING_CANCEL = 4,
    CANCELED = 5,
    EXPIRED = 6,
    PENDING_REPLACE = 7,
    REPLACED = 8,
    TRIGGERED = 9,
    TRADE_CORRECT = 10,
    ORDER_STATUS = 11,
};

inline const char *name_of(ExecType value) {
    switch (value) {
        case ExecType::PENDING_NEW: return "PENDING_NEW";
        case ExecType::REJECTED: return "REJECTED";
        case ExecType::NEW: return "NEW";
        case ExecType::TRADE: return "TRADE";
        case ExecType::PENDING_CANCEL: return "PENDING_CANCEL";
        case ExecType::CANCELED: return "CANCELED";
        case ExecType::EXPIRED: return "EXPIRED";
        case ExecType::PENDING_REPLACE: return "PENDING_REPLACE";
        case ExecType::REPLACED: return "REPLACED";
        case ExecType::TRIGGERED: return "TRIGGERED";
        case ExecType::TRADE_CORRECT: return "TRADE_CORRECT";
        case ExecType::ORDER_STATUS: return "ORDER_STATUS";
    }
    return "";
}

// An entry of a group.
class Level {
  public:
    static constexpr std::size_t block_length = 16;
    explicit Level(const char *block) : block_(block) {}
    Decimal price() const { return Decimal{detail::read<std::int64_t>(block_ + 0)}; }
    Decimal size() const { return Decimal{detail::read<std::int64_t>(block_ + 8)}; }

  private:
    const char *block_;
};

// An entry of a group.
class LevelChange {
  public:
    static constexpr std::size_t block_length = 17;
    explicit LevelChange(const char *block) : block_(block) {}
    Decimal price() const { return Decimal{detail::read<std::int64_t>(block_ + 0)}; }
    Decimal size() const { return Decimal{detail::read<std::int64_t>(block_ + 8)}; }
    BookSide side() const { return static_cast<BookSide>(detail::read<std::uint8_t>(block_ + 16)); }

  private:
    const char *block_;
};

// An entry of a group.
class Order {
  public:
    static constexpr std::size_t block_length = 24;
    explicit Order(const char *block) : block_(block) {}
    std::uint64_t number() const { return detail::read<std::uint64_t>(block_ + 0); }
    Decimal price() const { return Decimal{detail::read<std::int64_t>(block_ + 8)}; }
    Decimal size() const { return Decimal{detail::read<std::int64_t>(block_ + 16)}; }

  private:
    const char *block_;
};

// An entry of a group.
class OrderChange {
  public:
    static constexpr std::size_t block_length = 26;
    explicit OrderChange(const char *block) : block_(block) {}
    std::uint64_t number() const { return detail::read<std::uint64_t>(block_ + 0); }
    Decimal price() const { return Decimal{detail::read<std::int64_t>(block_ + 8)}; }
    Decimal size() const { return Decimal{detail::read<std::int64_t>(block_ + 16)}; }
    BookSide side() const { return static_cast<BookSide>(detail::read<std::uint8_t>(block_ + 24)); }
    OrderAction action() const { return static_cast<OrderAction>(detail::read<std::uint8_t>(block_ + 25)); }

  private:
    const char *block_;
};

// TICK
class Tick {
  public:
    static constexpr std::uint16_t template_id = 1;
    explicit Tick(Reader &reader)
        : block_(reader.block(84)) {}
    std::uint64_t seq() const { return detail::read<std::uint64_t>(block_ + 0); }
    std::uint64_t ts() const { return detail::read<std::uint64_t>(block_ + 8); }
    std::uint64_t date_time() const { return detail::read<std::uint64_t>(block_ + 16); }
    std::optional<Decimal> bid() const { return detail::optional(detail::read<std::int64_t>(block_ + 24)); }
    std::optional<Decimal> bid_size() const { return detail::optional(detail::read<std::int64_t>(block_ + 32)); }
    std::optional<Decimal> ask() const { return detail::optional(detail::read<std::int64_t>(block_ + 40)); }
    std::optional<Decimal> ask_size() const { return detail::optional(detail::read<std::int64_t>(block_ + 48)); }
    std::optional<Decimal> last() const { return detail::optional(detail::read<std::int64_t>(block_ + 56)); }
    std::optional<Decimal> last_size() const { return detail::optional(detail::read<std::int64_t>(block_ + 64)); }
    Decimal volume() const { return Decimal{detail::read<std::int64_t>(block_ + 72)}; }
    std::uint32_t security_id() const { return detail::read<std::uint32_t>(block_ + 80); }

  private:
    const char *block_;
};

// BOOK
class Book {
  public:
    static constexpr std::uint16_t template_id = 2;
    explicit Book(Reader &reader)
        : block_(reader.block(20)),
          bids_(reader.group<Level>()),
          asks_(reader.group<Level>()) {}
    std::uint64_t seq() const { return detail::read<std::uint64_t>(block_ + 0); }
    std::uint64_t ts() const { return detail::read<std::uint64_t>(block_ + 8); }
    std::uint32_t security_id() const { return detail::read<std::uint32_t>(block_ + 16); }
    const Group<Level> &bids() const { return bids_; }
    const Group<Level> &asks() const { return asks_; }

  private:
    const char *block_;
    Group<Level> bids_;
    Group<Level> asks_;
};

// SNAPSHOT
class DepthSnapshot {
  public:
    static constexpr std::uint16_t template_id = 3;
    explicit DepthSnapshot(Reader &reader)
        : block_(reader.block(24)),
          bids_(reader.group<Level>()),
          asks_(reader.group<Level>()) {}
    std::uint64_t seq() const { return detail::read<std::uint64_t>(block_ + 0); }
    std::uint64_t ts() const { return detail::read<std::uint64_t>(block_ + 8); }
    std::uint32_t security_id() const { return detail::read<std::uint32_t>(block_ + 16); }
    std::uint32_t checksum() const { return detail::read<std::uint32_t>(block_ + 20); }
    const Group<Level> &bids() const { return bids_; }
    const Group<Level> &asks() const { return asks_; }

  private:
    const char *block_;
    Group<Level> bids_;
    Group<Level> asks_;
};

// UPDATE
class DepthUpdate {
  public:
    static constexpr std::uint16_t template_id = 4;
    explicit DepthUpdate(Reader &reader)
        : block_(reader.block(33)),
          changes_(reader.group<LevelChange>()) {}
    std::uint64_t prev_seq() const { return detail::read<std::uint64_t>(block_ + 0); }
    std::uint64_t seq() const { return detail::read<std::uint64_t>(block_ + 8); }
    std::uint64_t ts() const { return detail::read<std::uint64_t>(block_ + 16); }
    std::uint32_t security_id() const { return detail::read<std::uint32_t>(block_ + 24); }
    std::uint32_t checksum() const { return detail::read<std::uint32_t>(block_ + 28); }
    bool is_checked() const { return (detail::read<std::uint8_t>(block_ + 32) & 1) != 0; }
    const Group<LevelChange> &changes() const { return changes_; }

  private:
    const char *block_;
    Group<LevelChange> changes_;
};

// ORDER_STATUS
class OrderStatus {
  public:
    static constexpr std::uint16_t template_id = 5;
    explicit OrderStatus(Reader &reader)
        : block_(reader.block(74)),
          int_id_(reader.text()),
          orig_int_id_(reader.text()),
          strategy_name_(reader.text()),
          reason_(reader.text()) {}
    std::uint64_t seq() const { return detail::read<std::uint64_t>(block_ + 0); }
    std::uint64_t ts() const { return detail::read<std::uint64_t>(block_ + 8); }
    Decimal quantity() const { return Decimal{detail::read<std::int64_t>(block_ + 16)}; }
    Decimal filled_quantity() const { return Decimal{detail::read<std::int64_t>(block_ + 24)}; }
    Decimal remaining_quantity() const { return Decimal{detail::read<std::int64_t>(block_ + 32)}; }
    std::optional<Decimal> avg_price() const { return detail::optional(detail::read<std::int64_t>(block_ + 40)); }
    std::optional<Decimal> last_quantity() const { return detail::optional(detail::read<std::int64_t>(block_ + 48)); }
    std::optional<Decimal> last_price() const { return detail::optional(detail::read<std::int64_t>(block_ + 56)); }
    std::uint32_t security_id() const { return detail::read<std::uint32_t>(block_ + 64); }
    std::uint16_t account_id() const { return detail::read<std::uint16_t>(block_ + 68); }
    Status status() const { return static_cast<Status>(detail::read<std::uint8_t>(block_ + 70)); }
    ExecType exec_type() const { return static_cast<ExecType>(detail::read<std::uint8_t>(block_ + 71)); }
    Side side() const { return static_cast<Side>(detail::read<std::uint8_t>(block_ + 72)); }
    bool is_unknown() const { return (detail::read<std::uint8_t>(block_ + 73) & 1) != 0; }
    std::string_view int_id() const { return int_id_; }
    std::string_view orig_int_id() const { return orig_int_id_; }
    std::string_view strategy_name() const { return strategy_name_; }
    std::string_view reason() const { return reason_; }

  private:
    const char *block_;
    std::string_view int_id_;
    std::string_view orig_int_id_;
    std::string_view strategy_name_;
    std::string_view reason_;
};

// TRADE
class Trade {
  public:
    static constexpr std::uint16_t template_id = 6;
    explicit Trade(Reader &reader)
        : block_(reader.block(45)) {}
    std::uint64_t seq() const { return detail::read<std::uint64_t>(block_ + 0); }
    std::uint64_t ts() const { return detail::read<std::uint64_t>(block_ + 8); }
    std::uint64_t trade_id() const { return detail::read<std::uint64_t>(block_ + 16); }
    Decimal price() const { return Decimal{detail::read<std::int64_t>(block_ + 24)}; }
    std::optional<Decimal> size() const { return detail::optional(detail::read<std::int64_t>(block_ + 32)); }
    std::uint32_t security_id() const { return detail::read<std::uint32_t>(block_ + 40); }
    Side aggressor() const { return static_cast<Side>(detail::read<std::uint8_t>(block_ + 44)); }

  private:
    const char *block_;
};

// SNAPSHOT
class OrdersSnapshot {
  public:
    static constexpr std::uint16_t template_id = 7;
    explicit OrdersSnapshot(Reader &reader)
        : block_(reader.block(24)),
          bids_(reader.group<Order>()),
          asks_(reader.group<Order>()) {}
    std::uint64_t seq() const { return detail::read<std::uint64_t>(block_ + 0); }
    std::uint64_t ts() const { return detail::read<std::uint64_t>(block_ + 8); }
    std::uint32_t security_id() const { return detail::read<std::uint32_t>(block_ + 16); }
    std::uint32_t checksum() const { return detail::read<std::uint32_t>(block_ + 20); }
    const Group<Order> &bids() const { return bids_; }
    const Group<Order> &asks() const { return asks_; }

  private:
    const char *block_;
    Group<Order> bids_;
    Group<Order> asks_;
};

// UPDATE
class OrdersUpdate {
  public:
    static constexpr std::uint16_t template_id = 8;
    explicit OrdersUpdate(Reader &reader)
        : block_(reader.block(33)),
          changes_(reader.group<OrderChange>()) {}
    std::uint64_t prev_seq() const { return detail::read<std::uint64_t>(block_ + 0); }
    std::uint64_t seq() const { return detail::read<std::uint64_t>(block_ + 8); }
    std::uint64_t ts() const { return detail::read<std::uint64_t>(block_ + 16); }
    std::uint32_t security_id() const { return detail::read<std::uint32_t>(block_ + 24); }
    std::uint32_t checksum() const { return detail::read<std::uint32_t>(block_ + 28); }
    bool is_checked() const { return (detail::read<std::uint8_t>(block_ + 32) & 1) != 0; }
    const Group<OrderChange> &changes() const { return changes_; }

  private:
    const char *block_;
    Group<OrderChange> changes_;
};

// SECURITY_STATUS
class SecurityStatus {
  public:
    static constexpr std::uint16_t template_id = 9;
    explicit SecurityStatus(Reader &reader)
        : block_(reader.block(22)) {}
    std::uint64_t seq() const { return detail::read<std::uint64_t>(block_ + 0); }
    std::uint64_t ts() const { return detail::read<std::uint64_t>(block_ + 8); }
    std::uint32_t security_id() const { return detail::read<std::uint32_t>(block_ + 16); }
    TradingSession session() const { return static_cast<TradingSession>(detail::read<std::uint8_t>(block_ + 20)); }
    bool is_halted() const { return (detail::read<std::uint8_t>(block_ + 21) & 1) != 0; }

  private:
    const char *block_;
};

// BAR
class Bar {
  public:
    static constexpr std::uint16_t template_id = 10;
    explicit Bar(Reader &reader)
        : block_(reader.block(68)),
          size_(reader.text()) {}
    std::uint64_t seq() const { return detail::read<std::uint64_t>(block_ + 0); }
    std::uint64_t ts() const { return detail::read<std::uint64_t>(block_ + 8); }
    std::uint64_t date_time() const { return detail::read<std::uint64_t>(block_ + 16); }
    Decimal open() const { return Decimal{detail::read<std::int64_t>(block_ + 24)}; }
    Decimal high() const { return Decimal{detail::read<std::int64_t>(block_ + 32)}; }
    Decimal low() const { return Decimal{detail::read<std::int64_t>(block_ + 40)}; }
    Decimal close() const { return Decimal{detail::read<std::int64_t>(block_ + 48)}; }
    Decimal volume() const { return Decimal{detail::read<std::int64_t>(block_ + 56)}; }
    std::uint32_t security_id() const { return detail::read<std::uint32_t>(block_ + 64); }
    std::string_view size() const { return size_; }

  private:
    const char *block_;
    std::string_view size_;
};

}  // namespace pitlane
