// A FIX client on QuickFIX: logs on, rests a limit order, replaces it, cancels it, buys at market,
// and logs out. Prints each report.
//
//   g++ -std=c++14 -Wno-deprecated -o client client.cpp -lquickfix -lpthread
//   ./client [client.cfg]

#include <quickfix/Application.h>
#include <quickfix/FileStore.h>
#include <quickfix/Session.h>
#include <quickfix/SessionSettings.h>
#include <quickfix/SocketInitiator.h>
#include <quickfix/fix44/NewOrderSingle.h>
#include <quickfix/fix44/OrderCancelReplaceRequest.h>
#include <quickfix/fix44/OrderCancelRequest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <iostream>
#include <map>
#include <mutex>
#include <stdexcept>

namespace {

const std::chrono::seconds PATIENCE(10);
const std::map<std::string, std::string> STATUS = {
    {"0", "NEW"},       {"1", "PARTIALLY_FILLED"}, {"2", "FILLED"},      {"4", "CANCELED"}, {"6", "PENDING_CANCEL"},
    {"8", "REJECTED"},  {"A", "PENDING_NEW"},      {"E", "PENDING_REPLACE"}};

std::string text_of(const FIX::FieldMap& fields, int tag) { return fields.isSetField(tag) ? fields.getField(tag) : ""; }

// QuickFIX calls it in its own thread; main waits for what it has received.
class Client : public FIX::Application {
public:
    void onCreate(const FIX::SessionID&) override {}
    void onLogon(const FIX::SessionID& id) override {
        std::cout << "logged on as " << id.getSenderCompID() << std::endl;
        set_logged_on(true);
    }
    void onLogout(const FIX::SessionID&) override { set_logged_on(false); }
    void toAdmin(FIX::Message&, const FIX::SessionID&) override {}
    void toApp(FIX::Message&, const FIX::SessionID&) throw(FIX::DoNotSend) override {}
    // A Logout says why a Logon is refused.
    void fromAdmin(const FIX::Message& message, const FIX::SessionID&)
        throw(FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::RejectLogon) override {
        if (message.isSetField(FIX::FIELD::Text)) std::cerr << message.getField(FIX::FIELD::Text) << std::endl;
    }
    void fromApp(const FIX::Message& message, const FIX::SessionID&)
        throw(FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::UnsupportedMessageType) override {
        std::lock_guard<std::mutex> lock(mutex_);
        received_.push_back(message);
        changed_.notify_all();
    }

    void wait_for_logon() {
        std::unique_lock<std::mutex> lock(mutex_);
        if (!changed_.wait_for(lock, PATIENCE, [this] { return is_logged_on_; })) throw std::runtime_error("no answer to the Logon");
    }

    // Prints the reports of an order until it has the status. Any other answer is an error.
    void wait_for(const std::string& id, const std::string& status) {
        for (;;) {
            std::unique_lock<std::mutex> lock(mutex_);
            if (!changed_.wait_for(lock, PATIENCE, [this] { return !received_.empty(); }))
                throw std::runtime_error("no report about " + id);
            const FIX::Message message = received_.front();
            received_.pop_front();
            if (text_of(message.getHeader(), FIX::FIELD::MsgType) != "8") throw std::runtime_error(text_of(message, FIX::FIELD::Text));
            const auto named = STATUS.find(text_of(message, FIX::FIELD::OrdStatus));
            const std::string reported = named == STATUS.end() ? text_of(message, FIX::FIELD::OrdStatus) : named->second;
            std::cout << text_of(message, FIX::FIELD::ClOrdID) << " " << reported << " filled " << text_of(message, FIX::FIELD::CumQty)
                      << " of " << text_of(message, FIX::FIELD::OrderQty) << " at " << text_of(message, FIX::FIELD::AvgPx) << " "
                      << text_of(message, FIX::FIELD::Text) << std::endl;
            if (text_of(message, FIX::FIELD::ClOrdID) != id) continue;
            if (reported == status) return;
            if (reported == "REJECTED") throw std::runtime_error(id + " was rejected");
        }
    }

private:
    void set_logged_on(bool is_logged_on) {
        std::lock_guard<std::mutex> lock(mutex_);
        is_logged_on_ = is_logged_on;
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<FIX::Message> received_;
    bool is_logged_on_ = false;
};

void trade(Client& client, const FIX::SessionID& session) {
    // An id may be used once a day, so it begins with the time.
    const std::string ids = std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
    const std::string first = ids + "-1", second = ids + "-2", third = ids + "-3", fourth = ids + "-4";
    const FIX::Side buy(FIX::Side_BUY);
    const FIX::OrdType limit(FIX::OrdType_LIMIT);
    const auto send = [&](FIX::Message& message) {
        message.setField(FIX::Symbol("AAPL"));
        if (!FIX::Session::sendToTarget(message, session)) throw std::runtime_error("the session is not logged on");
    };

    FIX44::NewOrderSingle order(first, buy, FIX::TransactTime(), limit);
    order.set(FIX::OrderQty(5));
    order.set(FIX::Price(200.25));
    send(order);
    client.wait_for(first, "NEW");

    FIX44::OrderCancelReplaceRequest replace(first, second, buy, FIX::TransactTime(), limit);
    replace.set(FIX::OrderQty(10));
    replace.set(FIX::Price(200.5));
    send(replace);
    client.wait_for(second, "NEW");

    FIX44::OrderCancelRequest cancel(second, third, buy, FIX::TransactTime());
    send(cancel);
    client.wait_for(third, "CANCELED");

    FIX44::NewOrderSingle market(fourth, buy, FIX::TransactTime(), FIX::OrdType(FIX::OrdType_MARKET));
    market.set(FIX::OrderQty(3));
    send(market);
    client.wait_for(fourth, "FILLED");
}

}  // namespace

int main(int argc, char** argv) {
    try {
        FIX::SessionSettings settings(argc > 1 ? argv[1] : "client.cfg");
        Client client;
        FIX::FileStoreFactory store(settings);
        FIX::SocketInitiator initiator(client, store, settings);
        initiator.start();
        try {
            client.wait_for_logon();
            trade(client, *settings.getSessions().begin());
        } catch (...) {
            // The thread of the initiator uses the client, and its destructor does not stop it.
            initiator.stop(true);
            throw;
        }
        initiator.stop();
        std::cout << "logged out" << std::endl;
    } catch (const std::exception& error) {
        std::cerr << "error: " << error.what() << std::endl;
        return 1;
    }
}
