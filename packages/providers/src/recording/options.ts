import type { Matching } from './file/replay-order.ts'

/** Options of `playedFetch`, all optional. */
export interface PlayedFetchOptions {
  /**
   * `request` (the default): each request gets the answer that was recorded for it, by method, path and body; run ids
   * in ids of tool calls may differ. `order`: the first request gets the first answer, whatever it asks.
   */
  readonly match?: Matching | undefined
}

/** Options of `recordingFetch`, all optional. */
export interface RecordingFetchOptions {
  /** The function that makes the requests. Default: the host's own `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** Options of `playedModel`, all optional. */
export interface PlayedModelOptions {
  /**
   * `request` (the default): each call gets the reply that was recorded for its request; run ids in ids of tool calls
   * may differ. `order`: the first call gets the first reply, whatever it asks.
   */
  readonly match?: Matching | undefined
}
