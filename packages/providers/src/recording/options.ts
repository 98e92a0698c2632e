import type { Matching } from './file/replay-order.ts'

/** How `playedFetch` plays. Everything may be left out. */
export interface PlayedFetchOptions {
  /**
   * `request` (the default): each request gets the answer that was recorded for it, by method, path and body; run ids in
   * the ids of tool calls count for nothing. `order`: the first request gets the first answer, whatever it asks.
   */
  readonly match?: Matching | undefined
}

/** How `recordingFetch` records. Everything may be left out. */
export interface RecordingFetchOptions {
  /** What makes the requests. The host's own `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** How `playedModel` plays. Everything may be left out. */
export interface PlayedModelOptions {
  /**
   * `request` (the default): each call gets the reply that was recorded for its request; run ids in the ids of tool calls
   * count for nothing. `order`: the first call gets the first reply, whatever it asks.
   */
  readonly match?: Matching | undefined
}
