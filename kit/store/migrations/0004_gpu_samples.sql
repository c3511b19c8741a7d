CREATE TABLE gpu_samples (
  repetition INTEGER NOT NULL, gpu INTEGER NOT NULL, at_ns BIGINT NOT NULL, sm_mhz INTEGER, memory_mhz INTEGER,
  power_mw BIGINT, energy_mj BIGINT, temperature_c INTEGER, slowdown BIGINT, used_mib BIGINT, busy_percent INTEGER,
  processes INTEGER
);
