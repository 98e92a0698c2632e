/**
 * Which of the events that nothing else depends on a run records; by default all of them. Readers do not see events
 * that are not recorded.
 */
export interface RecordingPolicy {
  /** The pieces of a tool call's input (`tool_input_delta`); the call itself holds its whole input. */
  readonly toolInputDeltas?: boolean | undefined
  /** The progress of a tool (`tool_progress`). */
  readonly toolProgress?: boolean | undefined
  /** The pieces of a model's reasoning (`assistant_reasoning_delta`); its message holds what its provider needs again. */
  readonly reasoning?: boolean | undefined
  /** The provider's own report of usage (`raw` of `usage_updated`), beside the counts that are made of it. */
  readonly rawUsage?: boolean | undefined
  /** The stack of an exception that a tool threw (`error` of `tool_result` and `tool_attempt_failed`); its result holds the message. */
  readonly toolErrors?: boolean | undefined
  /**
   * Whether contents stay once a run has ended (`full`, by default), or only their digests and the facts (`digests`): a run that
   * is under way needs its contents, to be resumed in any process.
   */
  readonly content?: 'full' | 'digests' | undefined
}

/** The names of the parts that may be left out. */
export const recordingParts = [
  'toolInputDeltas',
  'toolProgress',
  'reasoning',
  'rawUsage',
  'toolErrors',
] as const
export type RecordingPart = (typeof recordingParts)[number]
