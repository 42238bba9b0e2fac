// Reads files of poolproof vectors and answers every case on its own; shares no code with poolproof.
//
//   g++ -std=c++17 -O2 -o consumer consumer.cpp && ./consumer ../../vectors/*.json
//
// Exit status: 0 every case as it says, 1 some differ, 2 a file that cannot be read or was changed.
// With --no-checksum the content is judged even where a file was changed.

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include "model.hpp"

namespace {

// Raised by a case that differs.
struct Difference : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void expect(bool holds, const std::string& what) {
    if (!holds) throw Difference(what);
}

std::set<Int> read_ids(const std::vector<Json>& items) {
    std::set<Int> found;
    for (const Json& item : items) expect(found.insert(item.as_integer()).second, "an id twice");
    return found;
}

Key read_key(const Json& json) {
    Key key;
    for (const Json& item : json.as_items()) key.push_back(item.as_integer());
    return key;
}

Pages read_pages(const Json& json) {
    Pages pages;
    pages.of[full] = json.integer_at("full_pages", 0);
    pages.of[swa] = json.integer_at("swa_pages", 0);
    pages.of[state] = json.integer_at("state_pages", 0);
    return pages;
}

Hold read_hold(const Json& json) {
    Hold hold;
    hold.ids[full] = read_ids(json.items_at("ids"));
    hold.ids[swa] = read_ids(json.items_at("swa_ids"));
    hold.ids[state] = read_ids(json.items_at("state_ids"));
    return hold;
}

Node read_node(const Json& json) {
    Node node;
    node.key = read_key(json.at("key"));
    node.ids[full] = read_ids(json.items_at("ids"));
    node.ids[swa] = read_ids(json.items_at("swa_ids"));
    if (const Json* id = json.find("state_id")) node.ids[state].insert(id->as_integer());
    node.locks[full] = json.integer_at("full_locks", 0);
    node.locks[swa] = json.integer_at("swa_locks", 0);
    node.locks[state] = json.integer_at("state_locks", 0);
    node.last_use = json.integer_at("last_use", 0);
    expect(node.own() >= 1 && node.own() <= node.key.size(), "a node with more ids than page keys");
    return node;
}

Pool read_pool(const Geometry& geometry, const Json& json) {
    Pool pool;
    pool.geometry = geometry;
    for (const Json& item : json.at("members").as_items()) {
        pool.page_of.emplace_back(), pool.pending.emplace_back();
        for (const Json& pair : item.items_at("bindings"))
            pool.page_of.back()[pair.as_items().at(0).as_integer()] = pair.as_items().at(1).as_integer();
        for (const Json& pair : item.items_at("pending"))
            pool.pending.back().insert(pair.as_items().at(0).as_integer());
        pool.gate_open.push_back(item.truth_at("gate_open", true));
    }
    for (const Json& flight : json.items_at("flights"))
        for (const char* what : {"reads", "writes"})
            for (const Json& pair : flight.items_at(what))
                pool.in_flight.insert({pair.as_items().at(0).as_text(), pair.as_items().at(1).as_integer()});
    pool.free_ids[full] = read_ids(json.items_at("free_token_ids"));
    pool.free_ids[state] = read_ids(json.items_at("free_state_ids"));
    for (const Json& item : json.items_at("entries")) {
        const Node node = read_node(item);
        expect(pool.tree.emplace(node.key, node).second, "a node twice");
    }
    for (const Json& item : json.items_at("holds")) pool.holds[item.at("name").as_text()] = read_hold(item);
    if (const Json* queued = json.find("queued")) pool.queued = read_hold(*queued);
    return pool;
}

// W1-W5 of the state, as far as they can be told: an input that contradicts itself must not pass.
void check_pool(const Pool& pool) {
    expect(pool.page_of.size() == pool.geometry.members.size(), "member states and members are not equally many");
    std::set<Int> owned[role_count];
    const auto own = [&](const std::set<Int> (&ids)[role_count]) {
        for (int role : {full, swa, state})
            for (Int id : ids[role]) expect(owned[role].insert(id).second, "an id with two owners");
    };
    for (const auto& [key, node] : pool.tree) {
        own(node.ids);
        expect(node.parent().empty() || pool.tree.count(node.parent()), "a node without the one above it");
    }
    for (const auto& [name, hold] : pool.holds) own(hold.ids);
    own(pool.queued.ids);
    for (std::size_t i = 0; i < pool.page_of.size(); ++i) {
        const Member& m = pool.geometry.members[i];
        std::set<Int> pages = pool.pending[i], ids;
        for (const auto& [id, page] : pool.page_of[i]) {
            expect(pages.insert(page).second, m.name + ": a page twice");
            ids.insert(id);
        }
        expect(ids == owned[m.role], m.name + ": what is live is not what is owned");
        for (Int page : pages) expect(m.first_page <= page && page < m.page_count, m.name + ": a page out of range");
    }
    for (const auto& [name, id] : pool.in_flight) {
        bool live = false;
        for (std::size_t i = 0; i < pool.page_of.size(); ++i)
            live = live || (pool.geometry.members[i].name == name && pool.page_of[i].count(id));
        expect(live, "a forward reads a page that is not live");
    }
    for (Role role : {full, state}) {
        std::set<Int> all = pool.free_ids[role];
        for (Int id : owned[role]) expect(all.insert(id).second, "an id both free and bound");
        const auto [first, end] = pool.geometry.ids(role);
        expect(Int(all.size()) == end - first && (all.empty() || (*all.begin() == first && *all.rbegin() == end - 1)),
               "free and bound ids are not the id space");
    }
}

void judge_demand(const Geometry& geometry, const Json& test) {
    Holds holds;
    Int next = 0;  // any names for the ids will do
    for (const Json& call : test.items_at("setup")) {
        const auto pages = demand_of(call, geometry, holds);
        expect(pages.has_value(), "the setup is refused");
        Hold& hold = holds[call.at("name").as_text()];
        for (Int n = 0; n < pages->of[full]; ++n, ++next) {
            hold.ids[full].insert(next);
            if (n >= pages->of[full] - pages->of[swa]) hold.ids[swa].insert(next);
        }
    }
    const auto pages = demand_of(test.at("operation"), geometry, holds);
    expect(test.at("result").as_text() == (pages ? "counted" : "refused"), "result");
    expect(pages.has_value() == (test.find("pages") != nullptr), "pages of a call that is refused, or none of another");
    if (pages) expect(*pages == read_pages(test.at("pages")), "pages");
}

void judge_fits(const Geometry& geometry, const Json& test) {
    std::vector<Need> needs;
    for (const Json& item : test.at("needs").as_items()) {
        Need need;
        need.pinned = read_ids(item.items_at("pinned"));
        need.loose = item.integer_at("loose", 0);
        needs.push_back(need);
    }
    expect(needs.size() == geometry.members.size(), "needs and members are not equally many");
    const Swept swept = sweep(geometry, needs);
    expect(test.at("result").as_text() == (swept.fits ? "fits" : "does_not_fit"), "result");
    if (!swept.fits) {
        expect(test.at("fails_at").as_text() == geometry.members[swept.windows.size() - 1].name, "fails_at");
        expect(test.at("needed_end").as_integer() == swept.windows.back().second, "needed_end");
        return;
    }
    const auto& windows = test.at("windows").as_items();
    expect(windows.size() == needs.size(), "windows and members are not equally many");
    for (std::size_t i = 0; i < needs.size(); ++i) {
        expect((windows[i].kind == Json::null) == needs[i].empty(), "windows: of an empty member, or none of another");
        if (!needs[i].empty())
            expect(windows[i].as_items().at(0).as_integer() == swept.windows[i].first &&
                       windows[i].as_items().at(1).as_integer() == swept.windows[i].second,
                   "windows");
    }
}

void judge_steps(const Pool& pool, const std::vector<Step>& steps, const Json& test) {
    const auto& told = test.items_at("steps");
    expect(told.size() == steps.size(), "number of steps: " + std::to_string(steps.size()) + " are the least");
    Int evicted = 0;
    for (std::size_t k = 0; k < steps.size(); ++k) {
        expect(told[k].at("kind").as_text() == steps[k].kind && read_key(told[k].at("key")) == steps[k].key, "steps");
        if (steps[k].kind == "leaf") evicted += Int(pool.tree.at(steps[k].key).own());
    }
    expect(test.integer_at("evicted_pages", 0) == evicted, "evicted_pages");
}

void judge_reserve(const Geometry& geometry, const Json& test) {
    Pool pool = read_pool(geometry, test.at("state"));
    check_pool(pool);
    const Json& call = test.at("operation");
    const auto demand = demand_of(call, geometry, pool.holds);
    expect(demand && *demand == read_pages(test.at("pages")), "pages");
    pool.free(pool.queued.ids);  // grouped frees count before the first eviction
    const bool may_wait = call.truth_at("may_wait", true);
    const auto steps = victims(pool, *demand, may_wait);
    expect(test.at("result").as_text() == (steps ? "granted" : "rejected"), "result");
    expect((test.find("reason") == nullptr) == steps.has_value(), "a reason of a grant, or none of a rejection");
    judge_steps(pool, steps.value_or(std::vector<Step>{}), test);
    if (steps) return;
    const Reason reason = reason_of(pool, *demand, may_wait);
    const Json& told = test.at("reason");
    expect(told.at("type").as_text() == reason.type, "reason");
    if (reason.type == "impossible") {
        expect(told.at("bound").as_text() == reason.bound && told.at("where").as_text() == reason.where, "bound");
        expect(told.at("needed").as_integer() == reason.needed, "needed");
        expect(told.at("available").as_integer() == reason.available, "available");
    } else {
        std::vector<std::string> by;
        for (const Json& item : told.at("by").as_items()) by.push_back(item.as_text());
        expect(by == reason.by, "blocked by");
    }
}

// How many cases of the document differ; each is told on stderr.
int judge(const std::string& path, const Json& document) {
    const std::string& kind = document.at("kind").as_text();
    if (document.at("format").as_integer() != 1) throw std::runtime_error("another format than 1");
    int differ = 0;
    Int count = 0;
    for (const Json& group : document.at("testGroups").as_items()) {
        for (const Json& test : group.at("tests").as_items()) {
            ++count;
            try {
                expect(test.at("tcId").as_integer() == count, "tcId does not count up");
                const Geometry geometry = read_geometry(group.at("geometry"));
                for (const Json& flag : test.items_at("flags")) document.at("notes").at(flag.as_text());
                if (kind == "demand") judge_demand(geometry, test);
                else if (kind == "fits") judge_fits(geometry, test);
                else if (kind == "reserve") judge_reserve(geometry, test);
                else throw std::runtime_error("unknown kind " + kind);
            } catch (const std::exception& problem) {
                ++differ;
                std::cerr << path << ": case " << count << ": " << problem.what() << "\n";
            }
        }
    }
    if (document.at("numberOfTests").as_integer() != count) {
        ++differ;
        std::cerr << path << ": numberOfTests\n";
    }
    std::cout << path << ": " << count << " cases, " << differ << " differ\n";
    return differ || !count;
}

}  // namespace

int main(int argc, char** argv) {
    bool with_checksum = true, any = false;
    int differ = 0;
    for (int i = 1; i < argc; ++i) {
        if (!std::strcmp(argv[i], "--no-checksum")) {
            with_checksum = false;
            continue;
        }
        any = true;
        try {
            std::ifstream file(argv[i], std::ios::binary);
            if (!file) throw std::runtime_error("cannot be read");
            std::stringstream text;
            text << file.rdbuf();
            const std::string content = text.str();
            const Json document = JsonReader(content).read();
            if (with_checksum && document.at("checksum").as_integer() != Int(Checksum::of(document)))
                throw std::runtime_error("its checksum is not that of its content: it was changed after the export");
            differ += judge(argv[i], document);
        } catch (const std::exception& problem) {
            std::cerr << "error: " << argv[i] << ": " << problem.what() << "\n  fix: poolproof vectors export DIR\n";
            return 2;
        }
    }
    if (!any) {
        std::cerr << "error: no files\n  fix: consumer [--no-checksum] vectors/demand.json ...\n";
        return 2;
    }
    return differ != 0;
}
