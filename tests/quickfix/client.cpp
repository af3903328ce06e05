// A FIX client on QuickFIX, the engine that most clients use: sends the messages from standard
// input, and prints the messages that it receives on standard output.
//
//   client PORT SENDER TARGET STORE RESET(Y/N) [HEARTBEAT [DICTIONARY]]
//
// With a dictionary every message that it receives is checked against it. The environment variable
// BEGIN_STRING names another version than FIX.4.4: FIX.4.2, or FIXT.1.1 for FIX 5.0 SP2.
//
//   in:   send 35=D|11=o1|55=AAPL|…      a message; header and trailer are added
//         logout                         logs out and stays disconnected
//         logon                          connects again
//         next SENDER TARGET             sets the next sequence numbers to send and to expect
//   out:  logon | logout | app 35=8|… | admin 35=A|… | sent 35=D|…

#include <quickfix/Application.h>
#include <quickfix/FileStore.h>
#include <quickfix/Log.h>
#include <quickfix/Message.h>
#include <quickfix/Session.h>
#include <quickfix/SessionSettings.h>
#include <quickfix/SocketInitiator.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>

namespace {

std::mutex tongue;

void tell(const std::string& what, std::string text = "") {
    for (char& c : text)
        if (c == '\x01') c = '|';
    std::lock_guard<std::mutex> lock(tongue);
    std::cout << what << (text.empty() ? "" : " ") << text << std::endl;
}

struct Client : FIX::Application {
    void onCreate(const FIX::SessionID&) override {}
    void onLogon(const FIX::SessionID&) override { tell("logon"); }
    void onLogout(const FIX::SessionID&) override { tell("logout"); }
    void toAdmin(FIX::Message&, const FIX::SessionID&) override {}
    void toApp(FIX::Message& message, const FIX::SessionID&) throw(FIX::DoNotSend) override { tell("sent", message.toString()); }
    void fromAdmin(const FIX::Message& message, const FIX::SessionID&)
        throw(FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::RejectLogon) override {
        tell("admin", message.toString());
    }
    void fromApp(const FIX::Message& message, const FIX::SessionID&)
        throw(FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::UnsupportedMessageType) override {
        tell("app", message.toString());
    }
};

// The group that a field counts: the field that opens each member, and the others.
struct Members {
    int opens;
    std::set<int> others;
};

const std::map<int, Members> groups = {
    {267, {269, {}}}, {146, {55, {48, 22, 207, 167}}}, {453, {448, {447, 452}}}};

FIX::Message parse(const std::string& text) {
    FIX::Message message;
    std::istringstream fields(text);
    std::string field;
    auto open = groups.end();
    std::unique_ptr<FIX::Group> member;
    const auto add = [&] {
        if (member) message.addGroup(*member);
        member.reset();
    };
    while (std::getline(fields, field, '|')) {
        const auto at = field.find('=');
        if (at == std::string::npos) continue;
        const int tag = std::stoi(field.substr(0, at));
        const std::string value = field.substr(at + 1);
        if (open != groups.end() && tag == open->second.opens) {
            add();
            member = std::make_unique<FIX::Group>(open->first, open->second.opens);
        }
        const bool is_member = member && (tag == open->second.opens || open->second.others.count(tag));
        if (!is_member) {
            add();
            open = groups.find(tag);
        }
        if (is_member)
            member->setField(tag, value);
        else if (tag == 35 || tag == 97)
            message.getHeader().setField(tag, value);
        else if (open == groups.end())
            message.setField(tag, value);
    }
    add();
    const std::string kind = message.getHeader().getField(35);
    if (kind != "V" && kind != "x" && kind != "c" && kind != "g") message.setField(FIX::TransactTime());
    return message;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 6) {
        std::cerr << "client PORT SENDER TARGET STORE RESET [HEARTBEAT [DICTIONARY]]" << std::endl;
        return 2;
    }
    const char* named = std::getenv("BEGIN_STRING");
    const std::string begin = named ? named : "FIX.4.4";
    std::ostringstream text;
    text << "[DEFAULT]\nConnectionType=initiator\nStartTime=00:00:00\nEndTime=00:00:00\nReconnectInterval=1\n"
         << (argc > 7 ? std::string("UseDataDictionary=Y\nDataDictionary=") + argv[7] : "UseDataDictionary=N")
         << "\nHeartBtInt=" << (argc > 6 ? argv[6] : "30") << "\nFileStorePath=" << argv[4] << "\n"
         << "ResetOnLogon=" << argv[5] << "\nSocketNodelay=Y\n"
         << "[SESSION]\nBeginString=" << begin
         << (begin == "FIXT.1.1" ? "\nDefaultApplVerID=FIX.5.0SP2" : "") << "\nSenderCompID=" << argv[2] << "\nTargetCompID=" << argv[3] << "\n"
         << "SocketConnectHost=127.0.0.1\nSocketConnectPort=" << argv[1] << "\n";
    try {
        std::istringstream stream(text.str());
        FIX::SessionSettings settings(stream);
        Client client;
        FIX::FileStoreFactory store(settings);
        FIX::SocketInitiator initiator(client, store, settings);
        const FIX::SessionID id(begin, argv[2], argv[3]);
        initiator.start();
        std::string line;
        while (std::getline(std::cin, line)) {
            FIX::Session* session = FIX::Session::lookupSession(id);
            if (line.rfind("send ", 0) == 0) {
                FIX::Message message = parse(line.substr(5));
                FIX::Session::sendToTarget(message, id);
            } else if (line == "logout") {
                session->logout();
            } else if (line == "logon") {
                session->logon();
            } else if (line.rfind("next ", 0) == 0) {
                std::istringstream numbers(line.substr(5));
                int sender = 0, target = 0;
                numbers >> sender >> target;
                session->setNextSenderMsgSeqNum(sender);
                session->setNextTargetMsgSeqNum(target);
            } else if (line == "quit") {
                break;
            }
        }
        initiator.stop();
    } catch (const std::exception& error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
    return 0;
}
