// A FIX client on QuickFIX, the engine that most clients use: sends the messages from standard
// input, and prints the messages that it receives on standard output.
//
//   client PORT SENDER TARGET STORE RESET(Y/N) [HEARTBEAT]
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

#include <iostream>
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

FIX::Message parse(const std::string& text) {
    FIX::Message message;
    std::istringstream fields(text);
    std::string field;
    while (std::getline(fields, field, '|')) {
        const auto at = field.find('=');
        if (at == std::string::npos) continue;
        const int tag = std::stoi(field.substr(0, at));
        const std::string value = field.substr(at + 1);
        if (tag == 35 || tag == 97)
            message.getHeader().setField(tag, value);
        else
            message.setField(tag, value);
    }
    message.setField(FIX::TransactTime());
    return message;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 6) {
        std::cerr << "client PORT SENDER TARGET STORE RESET [HEARTBEAT]" << std::endl;
        return 2;
    }
    std::ostringstream text;
    text << "[DEFAULT]\nConnectionType=initiator\nStartTime=00:00:00\nEndTime=00:00:00\nReconnectInterval=1\n"
         << "UseDataDictionary=N\nHeartBtInt=" << (argc > 6 ? argv[6] : "30") << "\nFileStorePath=" << argv[4] << "\n"
         << "ResetOnLogon=" << argv[5] << "\nSocketNodelay=Y\n"
         << "[SESSION]\nBeginString=FIX.4.4\nSenderCompID=" << argv[2] << "\nTargetCompID=" << argv[3] << "\n"
         << "SocketConnectHost=127.0.0.1\nSocketConnectPort=" << argv[1] << "\n";
    try {
        std::istringstream stream(text.str());
        FIX::SessionSettings settings(stream);
        Client client;
        FIX::FileStoreFactory store(settings);
        FIX::SocketInitiator initiator(client, store, settings);
        const FIX::SessionID id("FIX.4.4", argv[2], argv[3]);
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
