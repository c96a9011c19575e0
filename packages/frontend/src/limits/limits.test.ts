import { describe, expect, it } from "@jest/globals";
import { combineLimits, type QueryTenantLimits } from "./limits.js";

const none: QueryTenantLimits = {
  max_entries_limit_per_query: 0,
  max_query_series: 0,
  max_query_bytes: 0,
  max_query_length: 0,
  max_query_lookback: 0,
  max_query_range: 0,
  max_streams_matchers_per_query: 0,
  max_query_bytes_read: 0,
  max_query_memory_bytes: 0,
  query_timeout: 0,
  required_labels: [],
  minimum_labels_number: 0,
  blocked_queries: [],
  volume_enabled: true,
  volume_max_series: 0,
  split_queries_by_interval: 0,
  max_query_parallelism: 0,
  retention_period: 0,
  retention_stream: [],
};

describe("combineLimits", () => {
  it("takes the smallest that is set of each limit", () => {
    const all = [
      {
        ...none,
        max_query_bytes_read: 500,
        query_timeout: 10,
        max_query_length: 7,
        required_labels: ["a"],
      },
      {
        ...none,
        max_query_bytes_read: 0,
        query_timeout: 5,
        max_query_length: 0,
        required_labels: ["b", "a"],
      },
      { ...none, max_query_bytes_read: 300, minimum_labels_number: 2 },
    ];
    expect(combineLimits(all)).toEqual({
      ...none,
      max_query_bytes_read: 300,
      query_timeout: 5,
      max_query_length: 7,
      required_labels: ["a", "b"],
      minimum_labels_number: 2,
    });
  });

  it("has no limit that no tenant has", () => {
    expect(combineLimits([none, none])).toEqual(none);
  });
});
