// What the vectors ask for, written from docs/spec.md alone: demands, the sweep, the least victims, the honest reason.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "json.hpp"

using Int = long long;
using Key = std::vector<Int>;

inline Int floor_div(Int a, Int b) { return a / b - (a % b != 0 && a % b < 0); }
inline Int ceil_div(Int a, Int b) { return -floor_div(-a, b); }

// --- The arena (#geometry)

enum Role { full, swa, state, role_count };

struct Member {
    std::string name, kind;
    Role role = full;
    Int page_bytes = 0, first_page = 0, page_count = 0;
    bool anchored = false;
};

struct Geometry {
    Int total_bytes = 0, page_tokens = 1;
    std::vector<Member> members;

    bool has(Role role) const {
        return std::any_of(members.begin(), members.end(), [&](const Member& m) { return m.role == role; });
    }
    // Ids of the space that pages of `role` are named in: [first, end) of the owner with the most usable pages.
    std::pair<Int, Int> ids(Role role) const {
        std::pair<Int, Int> found{0, 0};
        for (const Member& m : members)
            if (m.role == (role == state ? state : full) && m.page_count - m.first_page > found.second - found.first)
                found = {m.first_page, m.page_count};
        return found;
    }
};

inline Role role_named(const std::string& name) {
    if (name == "full") return full;
    if (name == "swa") return swa;
    if (name == "state") return state;
    throw std::runtime_error("no role " + name);
}

inline Geometry read_geometry(const Json& json) {
    Geometry found;
    found.total_bytes = json.at("total_bytes").as_integer();
    found.page_tokens = json.at("page_tokens").as_integer();
    Int sink = 0;
    for (const Json& item : json.at("members").as_items()) {
        Member m;
        m.name = item.at("name").as_text(), m.kind = item.at("kind").as_text();
        m.role = role_named(item.at("role").as_text());
        m.page_bytes = item.at("page_bytes").as_integer();
        m.first_page = item.at("first_page").as_integer();
        m.page_count = item.at("page_count").as_integer();
        m.anchored = item.truth_at("anchored", false);
        if (m.page_bytes < 1) throw std::runtime_error(m.name + ": page_bytes must be positive");
        sink = std::max(sink, m.page_bytes);
        found.members.push_back(m);
    }
    for (const Member& m : found.members)
        if (m.page_count != found.total_bytes / m.page_bytes || m.first_page != ceil_div(sink, m.page_bytes))
            throw std::runtime_error(m.name + ": page_count or first_page does not follow from the bytes");
    return found;
}

// --- Demands (#demand)

struct Pages {
    Int of[role_count] = {0, 0, 0};
    bool operator==(const Pages& other) const { return std::equal(of, of + role_count, other.of); }
};

// Ids that a running request holds, by role.
struct Hold {
    std::set<Int> ids[role_count];
};
using Holds = std::map<std::string, Hold>;

// What the call demands; nothing where it is to be refused.
inline std::optional<Pages> demand_of(const Json& call, const Geometry& geometry, const Holds& holds) {
    const Int t = geometry.page_tokens, largest = Int(1) << 48;
    const auto absurd = [&](Int size) { return size < 0 || size > largest; };
    const std::string& name = call.at("op").as_text();
    Pages found;
    Int token_pages = 0, swa_pages = -1;
    if (name == "alloc") {
        const Int tokens = call.at("tokens").as_integer();
        if (absurd(tokens)) return std::nullopt;
        token_pages = ceil_div(tokens, t);
    } else if (name == "extend") {
        const auto &prefixes = call.at("prefix_lens").as_items(), &seqs = call.at("seq_lens").as_items();
        if (prefixes.size() != seqs.size()) return std::nullopt;
        for (std::size_t r = 0; r < seqs.size(); ++r) {
            const Int prefix = prefixes[r].as_integer(), seq = seqs[r].as_integer();
            if (absurd(prefix) || absurd(seq) || prefix > seq) return std::nullopt;
            token_pages += ceil_div(seq, t) - ceil_div(prefix, t);
        }
    } else if (name == "decode") {
        for (const Json& length : call.at("seq_lens").as_items()) {
            if (absurd(length.as_integer() - 1)) return std::nullopt;
            token_pages += (length.as_integer() - 1) % t == 0;
        }
    } else if (name == "extend_tail") {
        const Int prefix = call.at("prefix_len").as_integer(), seq = call.at("seq_len").as_integer();
        const Int tail = call.at("tail").as_integer();
        if (absurd(prefix) || absurd(seq) || absurd(tail) || prefix > seq) return std::nullopt;
        token_pages = ceil_div(seq, t) - ceil_div(prefix, t);
        swa_pages = std::max(Int(0), ceil_div(seq, t) - std::max(ceil_div(prefix, t), floor_div(seq - tail, t)));
        if (tail == 0) swa_pages = 0;
    } else if (name == "alloc_states") {
        const Int count = call.at("count").as_integer();
        if (absurd(count)) return std::nullopt;
        found.of[state] = geometry.has(state) ? count : 0;
    } else if (name == "recover") {
        const auto hold = holds.find(call.at("name").as_text());
        if (hold == holds.end()) return std::nullopt;
        const auto& ids = hold->second.ids;
        swa_pages = std::count_if(ids[full].begin(), ids[full].end(), [&](Int id) { return !ids[swa].count(id); });
    } else {
        throw std::runtime_error("no demand " + name);
    }
    found.of[full] = token_pages;
    found.of[swa] = geometry.has(swa) ? (swa_pages < 0 ? token_pages : swa_pages) : 0;
    return found;
}

// --- What fits (#d-sweep)

struct Need {
    std::set<Int> pinned;
    Int loose = 0;
    bool empty() const { return pinned.empty() && loose == 0; }
};

struct Swept {
    bool fits = true;
    std::vector<std::pair<Int, Int>> windows;  // least [start, end) of each member, up to the first that fails
};

inline Swept sweep(const Geometry& geometry, const std::vector<Need>& needs) {
    Swept found;
    Int position = 0;
    for (std::size_t i = 0; i < needs.size(); ++i) {
        const Member& m = geometry.members[i];
        const Need& need = needs[i];
        const Int start = std::max(m.first_page, ceil_div(position, m.page_bytes));
        Int end = start + Int(need.pinned.size()) + need.loose;
        if (!need.pinned.empty()) end = std::max(end, *need.pinned.rbegin() + 1);
        found.windows.emplace_back(start, end);
        if (need.empty()) {
            found.fits = !(m.anchored && m.kind == "down" && position > m.page_count * m.page_bytes);
            if (m.anchored && m.kind == "up") position = std::max(position, m.first_page * m.page_bytes);
        } else {
            found.fits = end <= m.page_count && (need.pinned.empty() || start <= *need.pinned.begin());
            position = end * m.page_bytes;
        }
        if (!found.fits) return found;
    }
    return found;
}

// --- A pool and its cache (#state)

struct Node {
    Key key;
    std::set<Int> ids[role_count];  // of its own pages
    Int locks[role_count] = {0, 0, 0};
    Int last_use = 0;
    std::size_t own() const { return ids[full].size(); }
    Key parent() const { return Key(key.begin(), key.end() - Int(own())); }
    bool unlocked() const { return !locks[full] && !locks[swa] && !locks[state]; }
    bool state_unlocked() const { return ids[state].empty() || !locks[state]; }
};

struct Step {
    std::string kind;
    Key key;
    bool operator==(const Step& other) const { return kind == other.kind && key == other.key; }
};

struct Pool {
    Geometry geometry;
    std::vector<std::map<Int, Int>> page_of;  // of each member: id -> page
    std::vector<std::set<Int>> pending;
    std::vector<bool> gate_open;
    std::set<std::pair<std::string, Int>> in_flight;  // (member, id)
    std::set<Int> free_ids[role_count];               // [full] token ids, [state] state ids
    std::map<Key, Node> tree;
    Holds holds;
    Hold queued;

    void free(const std::set<Int> (&ids)[role_count]) {
        for (std::size_t i = 0; i < page_of.size(); ++i)
            for (Int id : ids[geometry.members[i].role]) page_of[i].erase(id);
        free_ids[full].insert(ids[full].begin(), ids[full].end());
        free_ids[state].insert(ids[state].begin(), ids[state].end());
    }
    void take(const Step& step) {
        Node& node = tree.at(step.key);
        std::set<Int> freed[role_count];
        if (step.kind == "leaf") freed[full] = node.ids[full];
        if (step.kind != "state") freed[swa] = node.ids[swa];
        freed[state] = node.ids[state];
        free(freed);
        for (int role : {swa, state})
            for (Int id : freed[role]) node.ids[role].erase(id);
        if (step.kind == "leaf") tree.erase(step.key);
    }
};

inline bool fits(const Pool& pool, const Pages& demand, bool may_wait) {
    if (demand.of[full] > Int(pool.free_ids[full].size()) || demand.of[state] > Int(pool.free_ids[state].size()))
        return false;
    std::vector<Need> needs;
    for (std::size_t i = 0; i < pool.page_of.size(); ++i) {
        const Member& m = pool.geometry.members[i];
        Need need;
        if (!may_wait) need.pinned = pool.pending[i];
        for (const auto& [id, page] : pool.page_of[i]) {
            const bool held = !pool.gate_open[i] || (!may_wait && pool.in_flight.count({m.name, id}));
            if (held) need.pinned.insert(page);
            else ++need.loose;
        }
        need.loose += demand.of[m.role];
        needs.push_back(need);
    }
    return sweep(pool.geometry, needs).fits;
}

// --- Eviction (#eviction-steps, #contract)

inline std::tuple<Int, Int, Key> age(const Node& node) { return {node.last_use, -Int(node.key.size()), node.key}; }

// Every legal step in policy order: leaves, least recently used first; then tombstones; then states.
inline std::vector<Step> policy_order(const Pool& pool) {
    std::map<Key, int> children;
    for (const auto& [key, node] : pool.tree) ++children[node.parent()];
    std::vector<Step> order;
    std::set<Key> gone;
    std::set<std::tuple<Int, Int, Key>> ready;
    for (const auto& [key, node] : pool.tree)
        if (node.unlocked() && !children[key]) ready.insert(age(node));
    while (!ready.empty()) {
        const Key key = std::get<2>(*ready.begin());
        ready.erase(ready.begin());
        order.push_back({"leaf", key});
        gone.insert(key);
        const Key parent = pool.tree.at(key).parent();
        --children[parent];
        const auto above = pool.tree.find(parent);
        if (above != pool.tree.end() && above->second.unlocked() && !children[parent]) ready.insert(age(above->second));
    }
    std::vector<const Node*> rest;
    for (const auto& [key, node] : pool.tree)
        if (!gone.count(key)) rest.push_back(&node);
    std::sort(rest.begin(), rest.end(), [](const Node* a, const Node* b) { return age(*a) < age(*b); });
    std::set<Key> stripped;
    for (const Node* node : rest)
        if (!node->ids[swa].empty() && !node->locks[swa] && node->state_unlocked()) {
            order.push_back({"tombstone", node->key});
            stripped.insert(node->key);
        }
    for (const Node* node : rest)
        if (!stripped.count(node->key) && !node->ids[state].empty() && node->state_unlocked())
            order.push_back({"state", node->key});
    return order;
}

inline Pool after(Pool pool, const std::vector<Step>& steps) {
    for (const Step& step : steps) pool.take(step);
    return pool;
}

// The steps without one of them and without those that depend on it: an ancestor is no leaf while a child stays.
inline std::vector<Step> without(const std::vector<Step>& steps, const Step& kept) {
    std::vector<Step> fewer;
    for (const Step& step : steps) {
        const bool is_above = kept.kind == "leaf" && step.kind == "leaf" && step.key.size() <= kept.key.size() &&
                              std::equal(step.key.begin(), step.key.end(), kept.key.begin());
        if (!(step == kept) && !is_above) fewer.push_back(step);
    }
    return fewer;
}

// The first sufficient steps of the policy order, less, most recently used first, those that can be spared.
inline std::optional<std::vector<Step>> victims(const Pool& pool, const Pages& demand, bool may_wait) {
    const std::vector<Step> order = policy_order(pool);
    for (std::size_t count = 0; count <= order.size(); ++count) {
        std::vector<Step> steps(order.begin(), order.begin() + Int(count));
        if (!fits(after(pool, steps), demand, may_wait)) continue;
        const std::vector<Step> all = steps;
        for (auto step = all.rbegin(); step != all.rend(); ++step)
            if (std::find(steps.begin(), steps.end(), *step) != steps.end()) {
                const std::vector<Step> fewer = without(steps, *step);
                if (fits(after(pool, fewer), demand, may_wait)) steps = fewer;
            }
        return steps;
    }
    return std::nullopt;
}

// --- Why not (#p4-honest-reason)

struct Reason {
    std::string type, bound, where;
    Int needed = 0, available = 0;
    std::vector<std::string> by;
};

inline Pool lifted(Pool pool, bool events, bool gates, bool locks) {
    if (events) {
        pool.in_flight.clear();
        for (auto& pages : pool.pending) pages.clear();
    }
    if (gates) pool.gate_open.assign(pool.gate_open.size(), true);
    if (locks)
        for (auto& [key, node] : pool.tree) std::fill(node.locks, node.locks + role_count, 0);
    return after(pool, policy_order(pool));
}

inline Reason reason_of(const Pool& pool, const Pages& demand, bool may_wait) {
    const Pool emptiest = lifted(pool, true, true, true);
    for (Role role : {full, state})
        if (demand.of[role] > Int(emptiest.free_ids[role].size()))
            return {"impossible", "ids", role == full ? "token" : "state", demand.of[role],
                    Int(emptiest.free_ids[role].size()), {}};
    std::vector<Need> needs;
    for (std::size_t i = 0; i < emptiest.page_of.size(); ++i) {
        needs.emplace_back();
        needs.back().loose = Int(emptiest.page_of[i].size()) + demand.of[emptiest.geometry.members[i].role];
    }
    const Swept swept = sweep(emptiest.geometry, needs);
    if (!swept.fits) {
        const Member& m = emptiest.geometry.members[swept.windows.size() - 1];
        return {"impossible", "bytes", m.name, swept.windows.back().second, m.page_count, {}};
    }
    static const char* names[] = {"events", "gates", "locks"};
    for (unsigned lifting : {1u, 2u, 4u, 3u, 5u, 6u, 7u})  // fewest first; bit k lifts names[k]
        if (fits(lifted(pool, lifting & 1, lifting & 2, lifting & 4), demand, may_wait)) {
            Reason reason{"blocked", "", "", 0, 0, {}};
            for (int k = 0; k < 3; ++k)
                if (lifting >> k & 1) reason.by.push_back(names[k]);
            return reason;
        }
    throw std::runtime_error("a demand that fits everywhere is rejected");
}
