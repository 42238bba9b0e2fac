// A reader for the JSON that the vectors use: objects, arrays, strings, whole numbers, true, false, null.
// It keeps the order of names, which the checksum needs.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct Json {
    enum Kind { null, boolean, number, text, array, object } kind = null;
    bool truth = false;
    long long integer = 0;
    std::string string;
    std::vector<Json> items;
    std::vector<std::pair<std::string, Json>> fields;

    // The field of that name, or nullptr.
    const Json* find(const std::string& name) const {
        for (const auto& field : fields)
            if (field.first == name) return &field.second;
        return nullptr;
    }
    const Json& at(const std::string& name) const {
        if (const Json* found = find(name)) return *found;
        throw std::runtime_error("no field \"" + name + "\"");
    }
    long long integer_at(const std::string& name, long long otherwise) const {
        const Json* found = find(name);
        return found ? found->as_integer() : otherwise;
    }
    bool truth_at(const std::string& name, bool otherwise) const {
        const Json* found = find(name);
        return found ? found->as_truth() : otherwise;
    }
    const std::vector<Json>& items_at(const std::string& name) const {
        static const std::vector<Json> none;
        const Json* found = find(name);
        return found ? found->as_items() : none;
    }
    long long as_integer() const { return expect(number), integer; }
    bool as_truth() const { return expect(boolean), truth; }
    const std::string& as_text() const { return expect(text), string; }
    const std::vector<Json>& as_items() const { return expect(array), items; }

private:
    void expect(Kind wanted) const {
        if (kind != wanted) throw std::runtime_error("a value of another type than expected");
    }
};

class JsonReader {
public:
    explicit JsonReader(const std::string& text) : text_(text) {}

    Json read() {
        Json value = read_value();
        skip_space();
        if (at_ != text_.size()) fail("something after the end");
        return value;
    }

private:
    const std::string& text_;
    std::size_t at_ = 0;

    [[noreturn]] void fail(const std::string& what) const {
        throw std::runtime_error("byte " + std::to_string(at_) + ": " + what);
    }
    void skip_space() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
            ++at_;
    }
    char peek() {
        skip_space();
        if (at_ == text_.size()) fail("the JSON ends in the middle");
        return text_[at_];
    }
    bool take(char wanted) {
        if (peek() != wanted) return false;
        ++at_;
        return true;
    }
    void need(char wanted) {
        if (!take(wanted)) fail(std::string("expected ") + wanted);
    }
    void word(const char* wanted) {
        for (const char* c = wanted; *c; ++c, ++at_)
            if (at_ == text_.size() || text_[at_] != *c) fail(std::string("expected ") + wanted);
    }
    Json read_value() {
        Json value;
        switch (peek()) {
            case '{': read_object(value); break;
            case '[': read_array(value); break;
            case '"': value.kind = Json::text, value.string = read_string(); break;
            case 't': word("true"), value.kind = Json::boolean, value.truth = true; break;
            case 'f': word("false"), value.kind = Json::boolean; break;
            case 'n': word("null"); break;
            default: read_number(value);
        }
        return value;
    }
    void read_object(Json& value) {
        value.kind = Json::object;
        need('{');
        if (take('}')) return;
        do {
            if (peek() != '"') fail("expected a name");
            std::string name = read_string();
            need(':');
            value.fields.emplace_back(std::move(name), read_value());
        } while (take(','));
        need('}');
    }
    void read_array(Json& value) {
        value.kind = Json::array;
        need('[');
        if (take(']')) return;
        do value.items.push_back(read_value());
        while (take(','));
        need(']');
    }
    std::string read_string() {
        need('"');
        std::string found;
        while (at_ < text_.size() && text_[at_] != '"') {
            if (text_[at_] == '\\') {
                if (++at_ == text_.size()) break;
                static const std::string escapes = "\"\\/nrt", meant = "\"\\/\n\r\t";
                const auto which = escapes.find(text_[at_]);
                if (which == std::string::npos) fail("an escape that the vectors do not use");
                found += meant[which];
            } else {
                found += text_[at_];
            }
            ++at_;
        }
        if (at_ == text_.size()) fail("a string that does not end");
        ++at_;
        return found;
    }
    void read_number(Json& value) {
        const std::size_t start = at_;
        if (text_[at_] == '-') ++at_;
        const std::size_t digits = at_;
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
        if (at_ == digits || at_ - digits > 18) fail("expected a whole number");
        if (text_[digits] == '0' && at_ - digits > 1) fail("a number that begins with 0");
        value.kind = Json::number;
        value.integer = std::stoll(text_.substr(start, at_ - start));
    }
};

// CRC-32 over every name and value, each followed by a line feed; the top-level "checksum" is left out.
class Checksum {
public:
    static std::uint32_t of(const Json& document) {
        Checksum sum;
        for (const auto& field : document.fields)
            if (field.first != "checksum") sum.word(field.first), sum.value(field.second);
        return ~sum.found_;
    }

private:
    std::uint32_t found_ = ~0u;

    void word(const std::string& text) {
        for (unsigned char byte : text + "\n") {
            found_ ^= byte;
            for (int bit = 0; bit < 8; ++bit) found_ = (found_ >> 1) ^ (0xEDB88320u & (0u - (found_ & 1u)));
        }
    }
    void value(const Json& json) {
        switch (json.kind) {
            case Json::null: word("null"); break;
            case Json::boolean: word(json.truth ? "true" : "false"); break;
            case Json::number: word(std::to_string(json.integer)); break;
            case Json::text: word(json.string); break;
            case Json::array:
                for (const Json& item : json.items) value(item);
                break;
            case Json::object:
                for (const auto& field : json.fields) word(field.first), value(field.second);
        }
    }
};
