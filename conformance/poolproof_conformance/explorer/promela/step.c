/* The step of the model, by itself: from the specification's text, sharing nothing with the other engines.
 * The tables that it reads (MEMBERS, PAGE_BYTES, OPERATIONS and the like) come before it. Ids count from 1: 0 is none. */

typedef struct {
  unsigned int enabled; /* the set of operations that apply: follows from the rest, for SPIN to read */
  unsigned char page[MEMBERS][MOST_IDS];      /* id to page; the sink keeps page 0 out of use */
  unsigned char pending[MEMBERS][MOST_PAGES]; /* vacated under a reader */
  unsigned char reads[MEMBERS][MOST_IDS], writes[MEMBERS][MOST_IDS];
  unsigned char closed, flying, group;
  unsigned char queued[MOST_IDS], queued_state[MOST_IDS]; /* freed while the group is open */
  unsigned char token[POSITIONS], end[POSITIONS], rank[POSITIONS], state[POSITIONS];
  unsigned char running[REQUESTS], tokens[REQUESTS][MOST_IDS], states[REQUESTS][MOST_IDS];
  unsigned char lock[HANDLES], released[HANDLES]; /* position + 1 */
} pool;

typedef struct { int full, swa, state, may_wait; } demand;
typedef struct { int kind, position; } eviction; /* LEAF, TOMBSTONE, STATE */
enum { LEAF, TOMBSTONE, STATE };

pool S = {.enabled = ENABLED_AT_FIRST};

static int largest(int a, int b) { return a > b ? a : b; }
static int smallest(int a, int b) { return a < b ? a : b; }
static int round_up(int a, int b) { return (a + b - 1) / b; }
static int asked(const demand *d, int m) { return ROLE[m] == FULL ? d->full : ROLE[m] == SWA ? d->swa : d->state; }

/* Pages */

static int live_at(const pool *s, int m, int page) {
  for (int i = 1; i < MOST_IDS; i++) if (s->page[m][i] == page) return i;
  return 0;
}

static int is_free(const pool *s, int m, int page) { return !s->pending[m][page] && !live_at(s, m, page); }

static int is_pinned(const pool *s, int m, int page, int may_wait) {
  int id = live_at(s, m, page);
  if (id && s->closed) return 1;
  return !may_wait && (s->pending[m][page] || (id && s->flying && s->reads[m][id]));
}

typedef struct { int pinned, low, high, loose, start, end; } need;

/* [D-fits, D-sweep] as_it_lies: whatever is live or pending stays. */
static int swept(const pool *s, const demand *d, int as_it_lies, int may_wait, need *needs) {
  int position = 0, fits = 1;
  for (int m = 0; m < MEMBERS; m++) {
    need *n = &needs[m];
    n->pinned = n->high = 0; n->low = 0; n->loose = asked(d, m);
    for (int p = FIRST[m]; p < COUNT[m]; p++) {
      int stays = as_it_lies ? !is_free(s, m, p) : is_pinned(s, m, p, may_wait);
      if (stays) { if (!n->pinned) n->low = p; n->pinned++; n->high = p + 1; }
      else if (live_at(s, m, p)) n->loose++;
    }
    n->start = largest(FIRST[m], round_up(position, PAGE_BYTES[m]));
    n->end = largest(n->high, n->start + n->pinned + n->loose);
    if (!n->pinned && !n->loose) continue;
    if ((n->pinned && n->start > n->low) || n->end > COUNT[m]) fits = 0;
    position = n->end * PAGE_BYTES[m];
  }
  return fits;
}

static int free_ids(const pool *s, int role) {
  int count = role == STATES ? STATE_IDS : TOKEN_IDS;
  for (int m = 0; m < MEMBERS; m++)
    if (ROLE[m] == role) for (int i = 1; i < MOST_IDS; i++) count -= s->page[m][i] != 0;
  return count;
}

static int fits(const pool *s, const demand *d) {
  need needs[MEMBERS];
  if (d->full > free_ids(s, FULL) || d->state > free_ids(s, STATES)) return 0;
  return swept(s, d, 0, d->may_wait, needs);
}

static void fire(pool *s) {
  s->flying = 0;
  memset(s->pending, 0, sizeof(s->pending));
  memset(s->reads, 0, sizeof(s->reads));
  memset(s->writes, 0, sizeof(s->writes));
}

static void drop_page(pool *s, int m, int id) { s->page[m][id] = s->reads[m][id] = s->writes[m][id] = 0; }

static void drop_role(pool *s, int role, int id) {
  for (int m = 0; m < MEMBERS; m++) if (ROLE[m] == role) drop_page(s, m, id);
}

static void drop_token(pool *s, int id) { drop_role(s, FULL, id); drop_role(s, SWA, id); }

static int has_swa(const pool *s, int id) {
  for (int m = 0; m < MEMBERS; m++) if (ROLE[m] == SWA) return s->page[m][id] != 0;
  return 0;
}

/* Windows, moves, and perhaps a wait; the demand fits. */
static int place(pool *s, const demand *d, need *needs) {
  int may_wait = 0, as_it_lies = swept(s, d, 1, 0, needs);
  if (!as_it_lies && !swept(s, d, 0, 0, needs)) {
    if (!d->may_wait || !swept(s, d, 0, 1, needs)) return 0;
    may_wait = 1;
  }
  int limit = -1;
  for (int m = MEMBERS - 1; m >= 0; m--) {
    if (!needs[m].pinned && !needs[m].loose) { needs[m].start = needs[m].end = 0; continue; }
    needs[m].end = limit < 0 ? COUNT[m] : smallest(COUNT[m], limit / PAGE_BYTES[m]);
    limit = needs[m].start * PAGE_BYTES[m];
  }
  if (may_wait) fire(s);
  for (int m = 0; m < MEMBERS && !as_it_lies; m++) {
    pool old = *s;
    int to = needs[m].start;
    for (int p = FIRST[m]; p < COUNT[m]; p++) {
      int id = live_at(&old, m, p);
      if (!id || is_pinned(&old, m, p, may_wait) || (p >= needs[m].start && p < needs[m].end)) continue;
      while (!is_free(&old, m, to)) to++;
      s->page[m][id] = to++;
    }
  }
  return 1;
}

/* A page for each id: nearest to where the member grows from. */
static void bind_pages(pool *s, int m, const need *window, const int *ids, int count) {
  int low = 0, high = 0;
  for (int p = FIRST[m]; p < COUNT[m]; p++) if (live_at(s, m, p)) { if (!low) low = p; high = p; }
  if (!low) low = high = (window->start + window->end) / 2;
  for (int n = 0; n < count; n++) {
    int best = 0, least = 0;
    for (int p = window->start; p < window->end; p++) {
      if (!is_free(s, m, p)) continue;
      int away = largest(0, largest(low - p, p - high));
      int far = KIND[m] == UP ? p : KIND[m] == DOWN ? -p : away * 1024 + p;
      if (!best || far < least) { best = p; least = far; }
    }
    s->page[m][ids[n]] = best;
  }
}

/* New ids in order, and pages for them; SWA pages also for the bare ids. */
static int take(pool *s, const demand *d, int *ids, int *state_ids, const int *bare, int bare_count) {
  need windows[MEMBERS];
  if (!place(s, d, windows)) return 0;
  int found = 0, states = 0;
  for (int i = 1; i <= TOKEN_IDS && found < d->full; i++) {
    int used = 0;
    for (int m = 0; m < MEMBERS; m++) if (ROLE[m] == FULL && s->page[m][i]) used = 1;
    if (!used) ids[found++] = i;
  }
  for (int i = 1; i <= STATE_IDS && states < d->state; i++) {
    int used = 0;
    for (int m = 0; m < MEMBERS; m++) if (ROLE[m] == STATES && s->page[m][i]) used = 1;
    if (!used) state_ids[states++] = i;
  }
  int skipped = largest(0, d->full - d->swa);
  for (int m = 0; m < MEMBERS; m++) {
    if (ROLE[m] == FULL) bind_pages(s, m, &windows[m], ids, d->full);
    if (ROLE[m] == STATES) bind_pages(s, m, &windows[m], state_ids, d->state);
    if (ROLE[m] == SWA) bind_pages(s, m, &windows[m], ids + skipped, d->full - skipped);
  }
  for (int m = 0; m < MEMBERS && d->swa > d->full; m++)
    if (ROLE[m] == SWA) bind_pages(s, m, &windows[m], bare, bare_count);
  return 1;
}

/* The prefix cache */

static void close_ranks(pool *s) {
  int new_rank[POSITIONS];
  for (int p = 0; p < POSITIONS; p++) {
    int seen[256] = {0}, below = 0;
    for (int q = 0; q < POSITIONS; q++)
      if (s->rank[q] && s->rank[q] < s->rank[p] && !seen[s->rank[q]]) { seen[s->rank[q]] = 1; below++; }
    new_rank[p] = s->rank[p] ? below + 1 : 0;
  }
  for (int p = 0; p < POSITIONS; p++) s->rank[p] = new_rank[p];
}

static void touch(pool *s, const int *path, int length) {
  for (int n = 0; n < length; n++) s->rank[path[n]] = 255;
  close_ranks(s);
}

static int split(pool *s, const int *path, int length) {
  int reached = 0;
  while (reached < length && s->token[path[reached]]) reached++;
  if (reached) s->end[path[reached - 1]] = 1;
  return reached;
}

static int usable(const pool *s, const int *path, int reached) {
  int found = 0, covered = 0;
  for (int n = 0; n < reached; n++) {
    covered = has_swa(s, s->token[path[n]]) ? covered + 1 : 0;
    if (!s->end[path[n]]) continue;
    if (CACHES_SWA && covered < smallest(WINDOW, n + 1)) continue;
    if (CACHES_STATES && !s->state[path[n]]) continue;
    found = n + 1;
  }
  return found;
}

static int is_above(int p, int q) { /* p is q or an ancestor of it */
  while (q >= 0 && q != p) q = PARENT[q];
  return q == p;
}

static int full_locked(const pool *s, int p) {
  for (int l = 0; l < HANDLES; l++) if (s->lock[l] && is_above(p, s->lock[l] - 1)) return 1;
  return 0;
}

static int swa_locked(const pool *s, int p) {
  for (int l = 0; l < HANDLES; l++) {
    int q = s->lock[l] - 1;
    if (CACHES_SWA && q >= 0 && !s->released[l] && is_above(p, q) && DEPTH[p] > DEPTH[q] - WINDOW) return 1;
  }
  return 0;
}

static int state_locked(const pool *s, int p) {
  for (int l = 0; l < HANDLES; l++) if (CACHES_STATES && s->lock[l] == p + 1 && !s->released[l]) return 1;
  return 0;
}

static int is_node(const pool *s, int p) { return s->token[p] && s->end[p]; }

static int is_legal(const pool *s, eviction e) {
  int p = e.position;
  if (!is_node(s, p)) return 0;
  int state_free = !s->state[p] || !state_locked(s, p);
  if (e.kind == TOMBSTONE) return has_swa(s, s->token[p]) && !swa_locked(s, p) && state_free;
  if (e.kind == STATE) return s->state[p] && state_free;
  for (int q = 0; q < POSITIONS; q++) if (PARENT[q] == p && s->token[q]) return 0;
  return !full_locked(s, p) && !swa_locked(s, p) && !state_locked(s, p);
}

static void evict(pool *s, eviction e) {
  int p = e.position;
  if (s->state[p]) { drop_role(s, STATES, s->state[p]); s->state[p] = 0; }
  if (e.kind == STATE) return;
  for (int q = p; q >= 0 && (q == p || !s->end[q]); q = PARENT[q]) {
    if (e.kind == TOMBSTONE) { drop_role(s, SWA, s->token[q]); continue; }
    drop_token(s, s->token[q]);
    s->token[q] = s->rank[q] = 0;
  }
  if (e.kind == LEAF) s->end[p] = 0;
}

static int older(const pool *s, int p, int q) {
  return s->rank[p] != s->rank[q] ? s->rank[p] < s->rank[q] : TURN[p] < TURN[q];
}

static int oldest(const pool *s, const pool *as_of, int kind, const int *done) {
  int best = -1;
  for (int p = 0; p < POSITIONS; p++) {
    eviction e = {kind, p};
    if (!done[p] && is_node(s, p) && is_legal(as_of, e) && (best < 0 || older(s, p, best))) best = p;
  }
  return best;
}

/* Every legal step in policy order. */
static int policy_order(const pool *s, eviction *order) {
  int count = 0, p, none[POSITIONS] = {0}, stripped[POSITIONS] = {0}, done[POSITIONS] = {0};
  pool rest = *s;
  while ((p = oldest(&rest, &rest, LEAF, none)) >= 0) {
    order[count] = (eviction){LEAF, p};
    evict(&rest, order[count++]);
  }
  while ((p = oldest(&rest, s, TOMBSTONE, stripped)) >= 0) {
    order[count++] = (eviction){TOMBSTONE, p};
    stripped[p] = 1;
  }
  for (int q = 0; q < POSITIONS; q++) done[q] = stripped[q];
  while ((p = oldest(&rest, s, STATE, done)) >= 0) {
    order[count++] = (eviction){STATE, p};
    done[p] = 1;
  }
  return count;
}

static int suffices(const pool *s, const demand *d, const eviction *order, const int *kept, int count) {
  pool rest = *s;
  for (int n = 0; n < count; n++) if (kept[n]) evict(&rest, order[n]);
  return fits(&rest, d);
}

/* The first sufficient steps, less those that can be spared; 0 where none suffice. */
static int make_room(pool *s, const demand *d) {
  eviction order[3 * POSITIONS];
  int all = policy_order(s, order), count = 0, kept[3 * POSITIONS] = {0};
  while (!suffices(s, d, order, kept, count)) { if (count == all) return 0; kept[count++] = 1; }
  for (int n = count - 1; n >= 0; n--) {
    int fewer[3 * POSITIONS];
    if (!kept[n]) continue;
    for (int k = 0; k < count; k++) {
      int depends = order[n].kind == LEAF && order[k].kind == LEAF && is_above(order[k].position, order[n].position);
      fewer[k] = kept[k] && k != n && !depends;
    }
    if (suffices(s, d, order, fewer, count)) memcpy(kept, fewer, count * sizeof(int));
  }
  for (int n = 0; n < count; n++) if (kept[n]) evict(s, order[n]);
  close_ranks(s);
  return 1;
}

/* Operations */

static void flush_group(pool *s) {
  for (int i = 1; i < MOST_IDS; i++) {
    if (s->queued[i]) drop_token(s, i);
    if (s->queued_state[i]) drop_role(s, STATES, i);
    s->queued[i] = s->queued_state[i] = 0;
  }
}

static int length_of(const unsigned char *ids) {
  int n = 0;
  while (n < MOST_IDS && ids[n]) n++;
  return n;
}

static void reserve(pool *s, const operation *o) {
  demand d = {o->full, o->swa, o->states, o->may_wait};
  int ids[MOST_IDS], states[MOST_IDS], bare[MOST_IDS], bare_count = 0, r = o->name;
  flush_group(s);
  if (o->kind == RECOVER) {
    for (int n = 0; n < length_of(s->tokens[r]); n++)
      if (CACHES_SWA && !has_swa(s, s->tokens[r][n])) bare[bare_count++] = s->tokens[r][n];
    d.swa = bare_count;
  }
  if (!make_room(s, &d) || !take(s, &d, ids, states, bare, bare_count)) return;
  s->running[r] = 1;
  int had = length_of(s->tokens[r]), owned = length_of(s->states[r]);
  for (int n = 0; n < d.full; n++) s->tokens[r][had + n] = ids[n];
  for (int n = 0; n < d.state; n++) s->states[r][owned + n] = states[n];
}

static void insert(pool *s, const operation *o) {
  const int *path = o->path;
  int ids[MOST_IDS], states[MOST_IDS], bare[MOST_IDS], bare_count = 0, reached = 0, last = path[o->length - 1];
  while (reached < o->length && s->token[path[reached]]) {
    if (CACHES_SWA && !has_swa(s, s->token[path[reached]])) bare[bare_count++] = s->token[path[reached]];
    reached++;
  }
  int new_pages = o->length - reached, with_state = o->states && !(is_node(s, last) && s->state[last]);
  demand d = {new_pages, CACHES_SWA ? new_pages + bare_count : 0, with_state, 0};
  if (!fits(s, &d)) return;
  split(s, path, o->length);
  take(s, &d, ids, states, bare, bare_count);
  for (int n = 0; n < new_pages; n++) s->token[path[reached + n]] = ids[n];
  s->end[last] = 1;
  if (CACHES_SWA && new_pages > WINDOW) s->end[path[o->length - WINDOW - 1]] = 1;
  if (with_state) s->state[last] = states[0];
  touch(s, path, o->length);
}

static int match(pool *s, const operation *o) {
  int found = usable(s, o->path, split(s, o->path, o->length));
  touch(s, o->path, found);
  return found;
}

static void end_request(pool *s, int r) {
  for (int n = 0; n < MOST_IDS; n++) {
    int id = s->tokens[r][n], state = s->states[r][n];
    if (id && s->group) s->queued[id] = 1; else if (id) drop_token(s, id);
    if (state && s->group) s->queued_state[state] = 1; else if (state) drop_role(s, STATES, state);
    s->tokens[r][n] = s->states[r][n] = 0;
  }
  s->running[r] = 0;
}

static void launch(pool *s, const operation *o) {
  s->flying = 1;
  for (int m = 0; m < MEMBERS; m++)
    for (int i = 1; i < MOST_IDS; i++) {
      s->reads[m][i] = s->page[m][i] != 0;
      for (int r = 0; r < REQUESTS; r++)
        for (int n = 0; n < MOST_IDS; n++)
          if (o->writes >> r & 1 && s->page[m][i] && (ROLE[m] == STATES ? s->states : s->tokens)[r][n] == i)
            s->writes[m][i] = 1;
    }
}

static void compact(pool *s) {
  for (int m = 0; m < MEMBERS && !s->closed; m++) {
    int up = KIND[m] == DOWN, low = 0, high = 0;
    for (int p = FIRST[m]; p < COUNT[m]; p++) if (live_at(s, m, p)) { if (!low) low = p; high = p; }
    pool old = *s;
    int from = up ? low : high, to = up ? high : low, step = up ? 1 : -1;
    while (low) {
      while (from >= low && from <= high && !(live_at(&old, m, from) && !old.writes[m][live_at(&old, m, from)])) from += step;
      while (to >= low && to <= high && !is_free(&old, m, to)) to -= step;
      if (from < low || from > high || to < low || to > high || (up ? from >= to : from <= to)) break;
      int id = live_at(&old, m, from);
      s->page[m][id] = to;
      if (s->flying && s->reads[m][id]) s->pending[m][from] = 1;
      from += step; to -= step;
    }
  }
}

/* [P11] As many pages as are available are taken and given back: pages may move meanwhile. */
static void capacity(pool *s) {
  int ids[MOST_IDS], states[MOST_IDS], pages = 0;
  demand d = {0, 0, 0, 0};
  for (;;) {
    demand more = {pages + 1, CACHES_SWA ? pages + 1 : 0, 0, 0};
    if (!fits(s, &more)) break;
    d = more; pages++;
  }
  if (take(s, &d, ids, states, ids, 0)) for (int n = 0; n < pages; n++) drop_token(s, ids[n]);
}

static int is_good(const pool *s, const operation *o) {
  switch (o->kind) {
    case NO_CALL: return 0;
    case FREE: case FREE_WINDOW: case RECOVER: return s->running[o->name];
    case UNLOCK: case UNLOCK_WINDOW: return s->lock[o->name] != 0;
    case LOCK: return !s->lock[o->name];
    case FIRE: return s->flying;
    case LAUNCH:
      for (int r = 0; r < REQUESTS; r++) if (o->writes >> r & 1 && !s->running[r]) return 0;
      return !s->flying;
    case GROUP_BEGIN: return !s->group;
    case GROUP_END: return s->group;
    default: return 1;
  }
}

static void note_enabled(pool *s) {
  s->enabled = 0;
  for (int n = 0; n < CALLS; n++) {
    const operation *o = &OPERATIONS[n];
    if ((BAD_CALLS || is_good(s, o)) && !(o->kind == CAPACITY && s->group)) s->enabled |= 1u << n;
  }
}

static void step(int number) {
  const operation *o = &OPERATIONS[number];
  if (!is_good(&S, o)) return;
  switch (o->kind) {
    case INSERT: insert(&S, o); break;
    case MATCH: match(&S, o); break;
    case LOCK: S.lock[o->name] = match(&S, o); if (S.lock[o->name]) S.lock[o->name] = o->path[S.lock[o->name] - 1] + 1; break;
    case UNLOCK: S.lock[o->name] = S.released[o->name] = 0; break;
    case UNLOCK_WINDOW: S.released[o->name] = 1; break;
    case RESERVE: case RECOVER: reserve(&S, o); break;
    case FREE: end_request(&S, o->name); break;
    case FREE_WINDOW: for (int n = 0; n < length_of(S.tokens[o->name]); n++) drop_role(&S, SWA, S.tokens[o->name][n]); break;
    case GROUP_BEGIN: S.group = 1; break;
    case GROUP_END: flush_group(&S); S.group = 0; break;
    case CLOSE: S.closed = 1; break;
    case OPEN: S.closed = 0; break;
    case LAUNCH: launch(&S, o); break;
    case FIRE: fire(&S); break;
    case COMPACT: compact(&S); break;
    case CAPACITY: capacity(&S); break;
  }  note_enabled(&S);
}
