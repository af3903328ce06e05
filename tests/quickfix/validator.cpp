// Checks messages with QuickFIX's dictionaries of FIX 5.0 SP2 and FIXT 1.1, which are part of its
// source and of no package.
//
//   validator FIX50SP2.xml FIXT11.xml
//
//   in:   35=D|11=a|…              a message; header and trailer are added
//   out:  REASON TAG 35=D|11=a|…   SessionRejectReason and tag of its fault; `ok 0` if it has none

#include <quickfix/DataDictionary.h>
#include <quickfix/Exceptions.h>
#include <quickfix/Message.h>

#include <cstdio>
#include <iostream>
#include <set>
#include <string>

namespace {

const std::string HEADER = "49=C|56=S|34=1|52=20261116-08:00:00.000|";

std::string framed(const std::string& body) {
    std::string text = body;
    text.insert(text.find('|') + 1, HEADER);
    for (char& c : text)
        if (c == '|') c = '\x01';
    text = "8=FIXT.1.1\x01" "9=" + std::to_string(text.size()) + "\x01" + text;
    unsigned sum = 0;
    for (char c : text) sum += static_cast<unsigned char>(c);
    char trailer[8];
    std::snprintf(trailer, sizeof trailer, "10=%03u\x01", sum % 256);
    return text + trailer;
}

std::string answer(const std::string& body, const FIX::DataDictionary& application,
                   const FIX::DataDictionary& session) {
    static const std::set<std::string> admin = {"0", "1", "2", "3", "4", "5", "A"};
    const std::string msgType = body.substr(3, body.find('|') - 3);
    const bool isAdmin = admin.count(msgType) > 0;
    const auto fault = [](int reason, int tag) { return std::to_string(reason) + " " + std::to_string(tag); };
    try {
        const FIX::Message message(framed(body), session, isAdmin ? session : application, false);
        FIX::DataDictionary::validate(message, &session, isAdmin ? &session : &application);
        return "ok 0";
    } catch (const FIX::InvalidTagNumber& e) {
        return fault(0, e.field);
    } catch (const FIX::RequiredTagMissing& e) {
        return fault(1, e.field);
    } catch (const FIX::TagNotDefinedForMessage& e) {
        return fault(2, e.field);
    } catch (const FIX::NoTagValue& e) {
        return fault(4, e.field);
    } catch (const FIX::IncorrectTagValue& e) {
        return fault(5, e.field);
    } catch (const FIX::IncorrectDataFormat& e) {
        return fault(6, e.field);
    } catch (const FIX::RepeatedTag& e) {
        return fault(13, e.field);
    } catch (const FIX::RepeatingGroupCountMismatch& e) {
        return fault(16, e.field);
    } catch (const std::exception& e) {
        return std::string("error ") + e.what();
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: validator FIX50SP2.xml FIXT11.xml" << std::endl;
        return 2;
    }
    const FIX::DataDictionary application(argv[1]);
    const FIX::DataDictionary session(argv[2]);
    for (std::string body; std::getline(std::cin, body);)
        std::cout << answer(body, application, session) << " " << body << "\n";
}
