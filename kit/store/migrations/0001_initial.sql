CREATE TABLE run (
  run_id VARCHAR NOT NULL, origin VARCHAR NOT NULL, spec_name VARCHAR NOT NULL, spec_json VARCHAR NOT NULL,
  spec_hash VARCHAR NOT NULL, workload_hash VARCHAR NOT NULL, rules_version INTEGER NOT NULL, kit_version VARCHAR NOT NULL,
  created_utc VARCHAR NOT NULL, host JSON NOT NULL, spec_commit VARCHAR, spec_committed_utc VARCHAR,
  declarations VARCHAR[] NOT NULL
);
CREATE TABLE launches (
  launch INTEGER PRIMARY KEY, block INTEGER NOT NULL, position INTEGER NOT NULL, arm VARCHAR NOT NULL,
  role VARCHAR NOT NULL, command VARCHAR[] NOT NULL, started_utc VARCHAR NOT NULL, status VARCHAR NOT NULL,
  startup_s DOUBLE, exit_code INTEGER, server_info JSON, failure VARCHAR, log VARCHAR NOT NULL
);
CREATE TABLE cells (
  cell INTEGER PRIMARY KEY, launch INTEGER NOT NULL, concurrency INTEGER NOT NULL, position INTEGER NOT NULL
);
CREATE TABLE repetitions (
  repetition INTEGER PRIMARY KEY, cell INTEGER NOT NULL, phase VARCHAR NOT NULL, started_utc VARCHAR NOT NULL,
  started_ns BIGINT NOT NULL, ended_ns BIGINT NOT NULL, client JSON NOT NULL
);
CREATE TABLE requests (
  repetition INTEGER NOT NULL, "index" INTEGER NOT NULL, rid VARCHAR NOT NULL, prompt VARCHAR NOT NULL,
  prompt_class VARCHAR NOT NULL, max_new_tokens INTEGER NOT NULL, sent_ns BIGINT NOT NULL, ended_ns BIGINT NOT NULL,
  outcome VARCHAR NOT NULL, status INTEGER, first_token_ns BIGINT, finish_reason VARCHAR, error VARCHAR,
  prompt_tokens INTEGER, completion_tokens INTEGER, cached_tokens INTEGER, verify_rounds INTEGER,
  correct_drafts INTEGER, histogram INTEGER[], retractions INTEGER, meta_info JSON, output_ids INTEGER[] NOT NULL,
  chunk_ns BIGINT[] NOT NULL, chunk_tokens INTEGER[] NOT NULL,
  PRIMARY KEY (repetition, "index")
);
CREATE TABLE iterations (
  repetition INTEGER NOT NULL, launch INTEGER NOT NULL, number BIGINT NOT NULL, ready_ns BIGINT NOT NULL,
  draft_tokens INTEGER NOT NULL, batch_size INTEGER NOT NULL, cuda_graph BOOLEAN NOT NULL
);
CREATE TABLE rounds (
  launch INTEGER NOT NULL, number BIGINT NOT NULL, "row" INTEGER NOT NULL, rid VARCHAR NOT NULL,
  tokens_before INTEGER NOT NULL, accepted INTEGER NOT NULL, ghost BOOLEAN NOT NULL
);
CREATE TABLE trace_losses (repetition INTEGER NOT NULL, lost BIGINT NOT NULL);
