// A FIX venue on QuickFIX: accepts orders, fills them by their price, and prints the messages that
// it receives and sends on standard output.
//
//   venue PORT SENDER TARGET STORE MARK DICTIONARY
//
// A buy at MARK or above and a sell at MARK or below trade at once, in two parts of which the first
// is 1, at MARK; market orders do so too. Other orders rest. Execution ids are made from the
// order's id: after a kill, an order that is processed twice has the same ids. A market data
// request is answered with the book, which begins with 10 to buy at MARK - 1 and 10 to sell at
// MARK + 1. Only the groups of the dictionary matter.
//
//   in:   fill ID QTY PRICE | cancel ID | reject Y|N | quit
//         price SYMBOL TYPE PRICE SIZE    an entry, without a change of the book
//         level SYMBOL TYPE PRICE SIZE    a level of the book; 0 removes it
//         deep SYMBOL COUNT               a book of so many levels, as a snapshot
//         fault SYMBOL                    the book begins again, and an entry without a size
//   out:  logon | logout | app 35=D|… | sent 35=8|… | rejects Y|N

#include <quickfix/Application.h>
#include <quickfix/FileStore.h>
#include <quickfix/Message.h>
#include <quickfix/Session.h>
#include <quickfix/SessionSettings.h>
#include <quickfix/SocketAcceptor.h>

#include <array>
#include <cmath>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>

namespace {

std::mutex tongue;

void tell(const std::string& what, std::string text = "") {
    for (char& c : text)
        if (c == '\x01') c = '|';
    std::lock_guard<std::mutex> lock(tongue);
    std::cout << what << (text.empty() ? "" : " ") << text << std::endl;
}

struct Order {
    std::string id, side, symbol;
    double qty = 0, filled = 0, value = 0;
    bool open = true;
};

struct Venue : FIX::Application {
    explicit Venue(double mark) : mark(mark) {}

    void onCreate(const FIX::SessionID&) override {}
    void onLogon(const FIX::SessionID& id) override {
        session = id;
        tell("logon");
    }
    void onLogout(const FIX::SessionID&) override { tell("logout"); }
    void toAdmin(FIX::Message&, const FIX::SessionID&) override {}
    void toApp(FIX::Message& message, const FIX::SessionID&) throw(FIX::DoNotSend) override { tell("sent", message.toString()); }
    void fromAdmin(const FIX::Message& message, const FIX::SessionID&)
        throw(FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::RejectLogon) override {
        if (message.getHeader().getField(35) == "A") tell("admin", message.toString());
    }
    void fromApp(const FIX::Message& message, const FIX::SessionID& id)
        throw(FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::UnsupportedMessageType) override {
        tell("app", message.toString());
        std::lock_guard<std::mutex> lock(books);
        session = id;
        const std::string type = message.getHeader().getField(35);
        if (type == "D")
            enter(message);
        else if (type == "F" || type == "G")
            change(message, type == "F");
        else if (type == "H")
            status(message);
        else if (type == "V")
            show(message);
    }

    // Sends a snapshot in answer to a request.
    void show(const FIX::Message& message) {
        FIX::Group asked(146, 55);
        message.getGroup(1, asked);
        const std::string symbol = asked.getField(55), request = message.getField(262);
        if (message.getField(263) == "2") {
            if (requests[symbol] == request) requests.erase(symbol);
            return;
        }
        requests[symbol] = request;
        if (levels.find(symbol) == levels.end()) fill_book(symbol, 1);
        snapshot(symbol);
    }

    // Makes a book of so many levels on each side.
    void fill_book(const std::string& symbol, int count) {
        Book book;
        for (int at = 0; at < count; at++) {
            book[0][mark - 1 - at * 0.01] = "10";
            book[1][mark + 1 + at * 0.01] = "10";
        }
        levels[symbol] = book;
    }

    void snapshot(const std::string& symbol) {
        auto asked = requests.find(symbol);
        if (asked == requests.end()) return;
        FIX::Message snapshot;
        snapshot.getHeader().setField(35, "W");
        snapshot.setField(262, asked->second);
        snapshot.setField(55, symbol);
        const Book& book = levels[symbol];
        for (auto level = book[0].rbegin(); level != book[0].rend(); ++level)
            add(snapshot, "", "0", text(level->first), level->second);
        for (const auto& level : book[1]) add(snapshot, "", "1", text(level.first), level.second);
        FIX::Session::sendToTarget(snapshot, session);
    }

    // Changes a level of the book, and says how.
    void change_level(const std::string& symbol, const std::string& type, const std::string& price, const std::string& size) {
        auto& side = levels[symbol][type == "0" ? 0 : 1];
        const double at = std::stod(price);
        const bool is_known = side.find(at) != side.end();
        if (size == "0")
            side.erase(at);
        else
            side[at] = size;
        increment(symbol, size == "0" ? "2" : is_known ? "1" : "0", type, price, size == "0" ? "" : size);
    }

    // Sends an increment of one entry.
    void increment(const std::string& symbol, const std::string& action, const std::string& type, const std::string& price,
                   const std::string& size) {
        auto asked = requests.find(symbol);
        if (asked == requests.end()) return;
        FIX::Message increment;
        increment.getHeader().setField(35, "X");
        increment.setField(262, asked->second);
        add(increment, action, type, price, size);
        FIX::Session::sendToTarget(increment, session);
    }

    // Adds an entry; an empty text is a field that it does not have.
    static void add(FIX::Message& message, const std::string& action, const std::string& type, const std::string& price,
                    const std::string& size) {
        FIX::Group entry(268, action.empty() ? 269 : 279);
        if (!action.empty()) entry.setField(279, action);
        entry.setField(269, type);
        entry.setField(270, price);
        if (!size.empty()) entry.setField(271, size);
        message.addGroup(entry);
    }

    void enter(const FIX::Message& message) {
        Order order;
        order.id = message.getField(11);
        order.side = message.getField(54);
        order.symbol = message.getField(55);
        order.qty = std::stod(message.getField(38));
        if (rejects) {
            order.open = false;
            orders[order.id] = order;
            report(orders[order.id], order.id, "", "8", "8", "R-" + order.id, 0, 0);
            return;
        }
        orders[order.id] = order;
        Order& held = orders[order.id];
        report(held, held.id, "", "0", "0", "A-" + held.id, 0, 0);
        const bool is_market = message.getField(40) == "1";
        const double price = is_market ? mark : std::stod(message.getField(44));
        if (order.side == "1" ? price >= mark : price <= mark) {
            if (held.qty > 1) fill(held, 1, mark, "F1-" + held.id);
            fill(held, held.qty - held.filled, mark, "F2-" + held.id);
        }
    }

    void fill(Order& order, double qty, double price, const std::string& exec) {
        order.filled += qty;
        order.value += qty * price;
        order.open = order.filled < order.qty;
        report(order, order.id, "", "F", order.open ? "1" : "2", exec, qty, price);
    }

    void change(const FIX::Message& message, bool is_cancel) {
        const std::string id = message.getField(11), orig = message.getField(41);
        auto found = orders.find(orig);
        if (found == orders.end() || !found->second.open) {
            FIX::Message reject;
            reject.getHeader().setField(35, "9");
            reject.setField(37, found == orders.end() ? "NONE" : orig);
            reject.setField(11, id);
            reject.setField(41, orig);
            reject.setField(39, found == orders.end() ? "8" : "2");
            reject.setField(434, is_cancel ? "1" : "2");
            reject.setField(102, found == orders.end() ? "1" : "0");
            FIX::Session::sendToTarget(reject, session);
            return;
        }
        Order order = found->second;
        order.id = id;
        if (is_cancel) {
            order.open = false;
            report(order, id, orig, "4", "4", "C-" + id, 0, 0);
        } else {
            order.qty = std::stod(message.getField(38));
            report(order, id, orig, "5", order.filled > 0 ? "1" : "0", "P-" + id, 0, 0);
        }
        orders.erase(found);
        orders[id] = order;
    }

    void status(const FIX::Message& message) {
        const std::string id = message.getField(11);
        auto found = orders.find(id);
        Order order = found == orders.end() ? Order() : found->second;
        const std::string status = found == orders.end() ? "8" : order.open ? (order.filled > 0 ? "1" : "0") : "2";
        report(order, id, "", "I", status, "0", 0, 0);
    }

    void report(const Order& order, const std::string& id, const std::string& orig, const std::string& exec_type,
                const std::string& status, const std::string& exec, double qty, double price) {
        FIX::Message message;
        message.getHeader().setField(35, "8");
        message.setField(37, "V" + id);
        message.setField(11, id);
        if (!orig.empty()) message.setField(41, orig);
        message.setField(17, exec);
        message.setField(150, exec_type);
        message.setField(39, status);
        message.setField(55, order.symbol);
        message.setField(54, order.side.empty() ? "1" : order.side);
        message.setField(38, text(order.qty));
        if (qty > 0) {
            message.setField(32, text(qty));
            message.setField(31, text(price));
        }
        message.setField(14, text(order.filled));
        message.setField(151, text(order.open ? order.qty - order.filled : 0));
        message.setField(6, text(order.filled > 0 ? order.value / order.filled : 0));
        FIX::Session::sendToTarget(message, session);
    }

    static std::string text(double value) {
        std::ostringstream out;
        out << value;
        return out.str();
    }

    void obey(const std::string& line) {
        std::lock_guard<std::mutex> lock(books);
        std::istringstream words(line);
        std::string word, id;
        words >> word >> id;
        if (word == "reject") {
            rejects = id == "Y";
            return tell("rejects " + id);
        }
        if (word == "price") {
            std::string type, price, size;
            words >> type >> price >> size;
            return increment(id, type == "2" ? "0" : "1", type, price, size);
        }
        if (word == "level") {
            std::string type, price, size;
            words >> type >> price >> size;
            return change_level(id, type, price, size);
        }
        if (word == "deep") {
            int count = 0;
            words >> count;
            fill_book(id, count);
            return snapshot(id);
        }
        if (word == "fault") {
            fill_book(id, 1);
            return increment(id, "0", "0", text(mark - 5), "");
        }
        auto found = orders.find(id);
        if (found == orders.end()) return;
        if (word == "fill") {
            double qty = 0, price = 0;
            words >> qty >> price;
            fill(found->second, qty, price, "X" + std::to_string(++executions) + "-" + id);
        } else if (word == "cancel") {
            found->second.open = false;
            report(found->second, id, "", "4", "4", "U-" + id, 0, 0);
        }
    }

    double mark;
    bool rejects = false;
    int executions = 0;
    std::mutex books;
    std::map<std::string, Order> orders;
    // Ids of the market data requests, by symbol.
    std::map<std::string, std::string> requests;
    // Sizes by price: bids and offers of each symbol.
    using Book = std::array<std::map<double, std::string>, 2>;
    std::map<std::string, Book> levels;
    FIX::SessionID session;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 7) {
        std::cerr << "venue PORT SENDER TARGET STORE MARK DICTIONARY" << std::endl;
        return 2;
    }
    std::ostringstream text;
    text << "[DEFAULT]\nConnectionType=acceptor\nStartTime=00:00:00\nEndTime=00:00:00\nUseDataDictionary=Y\n"
         << "DataDictionary=" << argv[6] << "\nAllowUnknownMsgFields=Y\nValidateUserDefinedFields=N\nValidateFieldsOutOfOrder=N\n"
         << "SocketAcceptPort=" << argv[1] << "\nSocketReuseAddress=Y\nSocketNodelay=Y\nFileStorePath=" << argv[4] << "\n"
         << "ResetOnLogon=N\n[SESSION]\nBeginString=FIX.4.4\nSenderCompID=" << argv[2] << "\nTargetCompID=" << argv[3] << "\n";
    try {
        std::istringstream stream(text.str());
        FIX::SessionSettings settings(stream);
        Venue venue(std::stod(argv[5]));
        FIX::FileStoreFactory store(settings);
        FIX::SocketAcceptor acceptor(venue, store, settings);
        acceptor.start();
        tell("ready");
        std::string line;
        while (std::getline(std::cin, line)) {
            if (line == "quit") break;
            venue.obey(line);
        }
        acceptor.stop();
    } catch (const std::exception& error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
    return 0;
}
