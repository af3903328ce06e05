// A QuickFIX acceptor for the bench: no dictionary, no log, a store in memory or, as in Pitlane, in
// files. It answers each New Order Single with the same Execution Reports that Pitlane sends, field
// by field: received (150=A) and at the venue (150=0), or with the second alone.
//
//   acceptor PORT SESSIONS REPORTS [FOLDER]

#include <quickfix/Application.h>
#include <quickfix/FileStore.h>
#include <quickfix/FixFields.h>
#include <quickfix/Message.h>
#include <quickfix/MessageStore.h>
#include <quickfix/Session.h>
#include <quickfix/SessionSettings.h>
#include <quickfix/SocketAcceptor.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

namespace {

struct Venue : FIX::Application {
    explicit Venue(int reports) : reports(reports) {}

    int reports;
    long count = 0;

    void onCreate(const FIX::SessionID&) override {}
    void onLogon(const FIX::SessionID&) override {}
    void onLogout(const FIX::SessionID&) override {}
    void toAdmin(FIX::Message&, const FIX::SessionID&) override {}
    void toApp(FIX::Message&, const FIX::SessionID&) throw(FIX::DoNotSend) override {}
    void fromAdmin(const FIX::Message&, const FIX::SessionID&)
        throw(FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::RejectLogon) override {}
    void fromApp(const FIX::Message& order, const FIX::SessionID& id)
        throw(FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::UnsupportedMessageType) override {
        if (reports > 1) report(order, id, "A");
        report(order, id, "0");
    }

    void report(const FIX::Message& order, const FIX::SessionID& id, const char* state) {
        FIX::Message report;
        report.getHeader().setField(35, "8");
        char exec_id[40];
        std::snprintf(exec_id, sizeof exec_id, "00000000-0000-0000-0000-%012ld", ++count);
        report.setField(37, order.getField(11));
        report.setField(11, order.getField(11));
        report.setField(17, exec_id);
        report.setField(150, state);
        report.setField(39, state);
        report.setField(1, "1");
        report.setField(55, order.getField(55));
        report.setField(48, "1");
        report.setField(22, "8");
        report.setField(167, "CS");
        report.setField(54, order.getField(54));
        report.setField(38, order.getField(38));
        report.setField(40, order.getField(40));
        report.setField(44, order.getField(44));
        report.setField(59, order.getField(59));
        report.setField(151, order.getField(38));
        report.setField(14, "0");
        report.setField(6, "0");
        report.setField(FIX::TransactTime(3));
        FIX::Session::sendToTarget(report, id);
    }
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    std::ostringstream text;
    text << "[DEFAULT]\nConnectionType=acceptor\nStartTime=00:00:00\nEndTime=00:00:00\nUseDataDictionary=N\nSocketNodelay=Y\n"
         << "SocketAcceptPort=" << argv[1] << "\nSocketReuseAddress=Y\nResetOnLogon=Y\n";
    if (argc > 4) text << "FileStorePath=" << argv[4] << "\n";
    for (int at = 1; at <= std::stoi(argv[2]); ++at)
        text << "[SESSION]\nBeginString=FIX.4.4\nSenderCompID=PITLANE\nTargetCompID=BENCH" << at << "\n";
    try {
        std::istringstream stream(text.str());
        FIX::SessionSettings settings(stream);
        Venue venue(std::stoi(argv[3]));
        std::unique_ptr<FIX::MessageStoreFactory> store;
        if (argc > 4) store.reset(new FIX::FileStoreFactory(settings));
        else store.reset(new FIX::MemoryStoreFactory);
        FIX::SocketAcceptor acceptor(venue, *store, settings);
        std::cout << "ready" << std::endl;
        acceptor.block();
    } catch (const std::exception& error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
}
