// Reads lines of hexadecimal bodies and prints each as the JSON object of the same message, for the
// test in clients/python/tests/test_sbe.py.
#include "pitlane_sbe.hpp"

#include <iostream>
#include <string>
#include <vector>

namespace {

std::string decimal(pitlane::Decimal value) {
    const bool negative = value.mantissa < 0;
    const std::uint64_t units =
        negative ? 0 - static_cast<std::uint64_t>(value.mantissa) : static_cast<std::uint64_t>(value.mantissa);
    std::string part = std::to_string(units % 100000000);
    part.insert(0, 8 - part.size(), '0');
    part.erase(part.find_last_not_of('0') + 1);
    return (negative ? "-" : "") + std::to_string(units / 100000000) + (part.empty() ? "" : "." + part);
}

class Object {
  public:
    explicit Object(const char *type) : text_("{\"type\":\"" + std::string(type) + "\"") {}
    void raw(const char *name, const std::string &value) {
        text_ += std::string(",\"") + name + "\":" + value;
    }
    void number(const char *name, std::uint64_t value) { raw(name, std::to_string(value)); }
    void decimal_of(const char *name, pitlane::Decimal value) { raw(name, decimal(value)); }
    void optional(const char *name, std::optional<pitlane::Decimal> value) {
        if (value) {
            raw(name, decimal(*value));
        }
    }
    void text(const char *name, std::string_view value) {
        if (!value.empty()) {
            raw(name, "\"" + std::string(value) + "\"");
        }
    }
    std::string end() const { return text_ + "}"; }

  private:
    std::string text_;
};

std::string levels(const pitlane::Group<pitlane::Level> &group, bool named) {
    std::string text = "[";
    for (std::size_t at = 0; at < group.size(); ++at) {
        const std::string price = decimal(group[at].price()), size = decimal(group[at].size());
        text += at > 0 ? "," : "";
        text += named ? "{\"price\":" + price + ",\"size\":" + size + "}" : "[" + price + "," + size + "]";
    }
    return text + "]";
}

std::string shown(const pitlane::Tick &tick) {
    Object object("TICK");
    object.number("seq", tick.seq());
    object.number("ts", tick.ts());
    object.number("dateTime", tick.date_time());
    object.number("securityId", tick.security_id());
    object.optional("bid", tick.bid());
    object.optional("bidSize", tick.bid_size());
    object.optional("ask", tick.ask());
    object.optional("askSize", tick.ask_size());
    object.optional("last", tick.last());
    object.optional("lastSize", tick.last_size());
    object.decimal_of("volume", tick.volume());
    return object.end();
}

std::string shown(const pitlane::Book &book) {
    Object object("BOOK");
    object.number("seq", book.seq());
    object.number("ts", book.ts());
    object.number("securityId", book.security_id());
    object.raw("bids", levels(book.bids(), true));
    object.raw("asks", levels(book.asks(), true));
    return object.end();
}

std::string shown(const pitlane::DepthSnapshot &depth) {
    Object object("SNAPSHOT");
    object.number("seq", depth.seq());
    object.number("ts", depth.ts());
    object.number("securityId", depth.security_id());
    object.raw("bids", levels(depth.bids(), false));
    object.raw("asks", levels(depth.asks(), false));
    object.number("checksum", depth.checksum());
    return object.end();
}

std::string shown(const pitlane::DepthUpdate &depth) {
    Object object("UPDATE");
    object.number("prevSeq", depth.prev_seq());
    object.number("seq", depth.seq());
    object.number("ts", depth.ts());
    object.number("securityId", depth.security_id());
    std::string changes = "[";
    for (std::size_t at = 0; at < depth.changes().size(); ++at) {
        const pitlane::LevelChange change = depth.changes()[at];
        changes += std::string(at > 0 ? "," : "") + "[\"" + pitlane::name_of(change.side()) + "\"," +
                   decimal(change.price()) + "," + decimal(change.size()) + "]";
    }
    object.raw("changes", changes + "]");
    if (depth.is_checked()) {
        object.number("checksum", depth.checksum());
    }
    return object.end();
}

std::string orders(const pitlane::Group<pitlane::Order> &group) {
    std::string text = "[";
    for (std::size_t at = 0; at < group.size(); ++at) {
        text += std::string(at > 0 ? "," : "") + "[" + std::to_string(group[at].number()) + "," +
                decimal(group[at].price()) + "," + decimal(group[at].size()) + "]";
    }
    return text + "]";
}

std::string shown(const pitlane::OrdersSnapshot &book) {
    Object object("SNAPSHOT");
    object.number("seq", book.seq());
    object.number("ts", book.ts());
    object.number("securityId", book.security_id());
    object.raw("bids", orders(book.bids()));
    object.raw("asks", orders(book.asks()));
    object.number("checksum", book.checksum());
    return object.end();
}

std::string shown(const pitlane::OrdersUpdate &book) {
    Object object("UPDATE");
    object.number("prevSeq", book.prev_seq());
    object.number("seq", book.seq());
    object.number("ts", book.ts());
    object.number("securityId", book.security_id());
    std::string changes = "[";
    for (std::size_t at = 0; at < book.changes().size(); ++at) {
        const pitlane::OrderChange change = book.changes()[at];
        changes += std::string(at > 0 ? "," : "") + "[\"" + pitlane::name_of(change.action()) + "\"," +
                   std::to_string(change.number()) + ",\"" + pitlane::name_of(change.side()) + "\"," +
                   decimal(change.price()) + "," + decimal(change.size()) + "]";
    }
    object.raw("changes", changes + "]");
    if (book.is_checked()) {
        object.number("checksum", book.checksum());
    }
    return object.end();
}

std::string shown(const pitlane::Trade &trade) {
    Object object("TRADE");
    object.number("seq", trade.seq());
    object.number("ts", trade.ts());
    object.number("tradeId", trade.trade_id());
    object.number("securityId", trade.security_id());
    object.decimal_of("price", trade.price());
    object.optional("size", trade.size());
    object.text("aggressor", pitlane::name_of(trade.aggressor()));
    return object.end();
}

std::string shown(const pitlane::SecurityStatus &status) {
    Object object("SECURITY_STATUS");
    object.number("seq", status.seq());
    object.number("ts", status.ts());
    object.number("securityId", status.security_id());
    object.text("session", pitlane::name_of(status.session()));
    object.raw("halted", status.is_halted() ? "true" : "false");
    return object.end();
}

std::string shown(const pitlane::Bar &bar) {
    Object object("BAR");
    object.number("seq", bar.seq());
    object.number("ts", bar.ts());
    object.number("dateTime", bar.date_time());
    object.number("securityId", bar.security_id());
    object.text("size", bar.size());
    object.decimal_of("open", bar.open());
    object.decimal_of("high", bar.high());
    object.decimal_of("low", bar.low());
    object.decimal_of("close", bar.close());
    object.decimal_of("volume", bar.volume());
    return object.end();
}

std::string shown(const pitlane::OrderStatus &order) {
    Object object("ORDER_STATUS");
    object.number("seq", order.seq());
    object.number("ts", order.ts());
    object.text("intId", order.int_id());
    object.text("origIntId", order.orig_int_id());
    object.text("strategyName", order.strategy_name());
    object.text("status", pitlane::name_of(order.status()));
    object.text("execType", pitlane::name_of(order.exec_type()));
    object.decimal_of("filledQuantity", order.filled_quantity());
    object.decimal_of("remainingQuantity", order.remaining_quantity());
    object.optional("avgPrice", order.avg_price());
    object.optional("lastQuantity", order.last_quantity());
    object.optional("lastPrice", order.last_price());
    object.text("reason", order.reason());
    object.number("securityId", order.security_id());
    object.text("side", pitlane::name_of(order.side()));
    object.decimal_of("quantity", order.quantity());
    object.number("accountId", order.account_id());
    if (order.is_unknown()) {
        object.raw("unknown", "true");
    }
    return object.end();
}

std::string read(pitlane::Reader &reader) {
    switch (reader.template_id()) {
        case pitlane::Tick::template_id: return shown(pitlane::Tick(reader));
        case pitlane::Book::template_id: return shown(pitlane::Book(reader));
        case pitlane::DepthSnapshot::template_id: return shown(pitlane::DepthSnapshot(reader));
        case pitlane::DepthUpdate::template_id: return shown(pitlane::DepthUpdate(reader));
        case pitlane::OrderStatus::template_id: return shown(pitlane::OrderStatus(reader));
        case pitlane::OrdersSnapshot::template_id: return shown(pitlane::OrdersSnapshot(reader));
        case pitlane::OrdersUpdate::template_id: return shown(pitlane::OrdersUpdate(reader));
        case pitlane::Trade::template_id: return shown(pitlane::Trade(reader));
        case pitlane::SecurityStatus::template_id: return shown(pitlane::SecurityStatus(reader));
        case pitlane::Bar::template_id: return shown(pitlane::Bar(reader));
        default: throw std::runtime_error("an unknown message");
    }
}

std::vector<char> octets(const std::string &hex) {
    std::vector<char> body;
    for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
        body.push_back(static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16)));
    }
    return body;
}

}  // namespace

int main() {
    std::string line;
    while (std::getline(std::cin, line)) {
        const std::vector<char> body = octets(line);
        try {
            pitlane::Reader reader(body.data(), body.size());
            while (reader.next()) {
                std::cout << read(reader) << "\n";
            }
        } catch (const std::runtime_error &error) {
            std::cout << "error: " << error.what() << "\n";
        }
    }
    return 0;
}
