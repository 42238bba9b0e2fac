-- One campaign in one file. Every row but those of `run` follows from the jobs that were done, whoever did them and
-- in whatever order: so a killed campaign goes on, and shards merge.

CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
-- seed: of the random histories. plan: version of the enumeration. A file is only continued with the same ones.

CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    seconds REAL NOT NULL,      -- wall time so far; written with every job
    state TEXT NOT NULL         -- partial while it goes on, and for ever if it was killed; complete; interrupted
);

CREATE TABLE cell (
    id INTEGER PRIMARY KEY,
    target TEXT NOT NULL,       -- reference, sglang==0.5.23
    core TEXT NOT NULL,         -- tree core: rust, python; empty where the target has but one
    mode TEXT NOT NULL,         -- compaction mode: eager, lazy; empty where the target has but one
    layout TEXT NOT NULL,       -- swa2, mamba2, tri
    unchecked TEXT NOT NULL DEFAULT '[]',   -- JSON list: rules that cannot be judged, as the target itself declares
    UNIQUE (target, core, mode, layout)
);

CREATE TABLE job (
    cell INTEGER NOT NULL REFERENCES cell (id),
    stage INTEGER NOT NULL,     -- 0: exhaustive small scope; 1: random histories
    number INTEGER NOT NULL,    -- from 0: which part of the stage
    histories INTEGER NOT NULL, -- run and judged
    operations INTEGER NOT NULL,-- carried out and judged
    unbuilt INTEGER NOT NULL,   -- histories with a geometry that the target cannot be built with; not counted above
    witnessed TEXT NOT NULL,    -- JSON object: name of a rule to the number of steps that put a question to it
    seconds REAL NOT NULL,
    PRIMARY KEY (cell, stage, number)
) WITHOUT ROWID;

CREATE TABLE doubt (
    cell INTEGER NOT NULL,
    stage INTEGER NOT NULL,
    number INTEGER NOT NULL,
    reason TEXT NOT NULL,       -- why histories of the job ended without an answer: a crash, a time-out, a dead process
    histories INTEGER NOT NULL, -- how many did
    PRIMARY KEY (cell, stage, number, reason),
    FOREIGN KEY (cell, stage, number) REFERENCES job
) WITHOUT ROWID;

CREATE TABLE sighting (
    cell INTEGER NOT NULL,
    stage INTEGER NOT NULL,
    number INTEGER NOT NULL,
    property TEXT NOT NULL,     -- the violated rule: first-sufficient
    bucket TEXT NOT NULL,       -- signature of the unshrunk history
    histories INTEGER NOT NULL, -- how many of the job show it
    history TEXT NOT NULL,      -- JSON [geometry, operations]: the shortest of them
    PRIMARY KEY (cell, stage, number, property, bucket),
    FOREIGN KEY (cell, stage, number) REFERENCES job
) WITHOUT ROWID;

CREATE TABLE shrunk (
    cell INTEGER NOT NULL,
    stage INTEGER NOT NULL,     -- with number: the sighting that was shrunk, the earliest of its bucket
    number INTEGER NOT NULL,
    property TEXT NOT NULL,
    bucket TEXT NOT NULL,
    signature TEXT NOT NULL,    -- of the shrunk history: with `property`, the kind
    operations INTEGER NOT NULL,
    message TEXT NOT NULL,      -- what the rule finds there
    trace TEXT NOT NULL,        -- the trace file's text
    seconds REAL NOT NULL,
    PRIMARY KEY (cell, stage, number, property, bucket),
    FOREIGN KEY (cell, stage, number, property, bucket) REFERENCES sighting
) WITHOUT ROWID;
