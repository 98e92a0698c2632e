import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { RunId } from '@tallystick/core'
import type { Recovery, ToolCallId, ToolEffect } from '@tallystick/core/vocabulary'
import type { ApprovalPolicy } from '../approval/approval.ts'
import type { ToolContext } from '../execution/executor.ts'
import type { RetryOptions } from '../execution/retry.ts'
import type { InputOf, InputSchema } from '../input/schema.ts'

/** What `toModel` gets: what the output schema gives out, or anything without one. */
export type ResultOf<Output extends InputSchema> = Output extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<Output>
  : // oxlint-disable-next-line typescript/no-explicit-any -- without a schema only the author knows the type
    any

/** Which call in doubt is asked about. */
export interface ReconcileContext<Context = unknown> {
  readonly runId: RunId
  readonly turn: number
  readonly toolCallId: ToolCallId
  /** The start of the call whose ending is unknown. */
  readonly attempt: number
  /** The key that `execute` was given, to look the effect up by. */
  readonly idempotencyKey: string
  /** What the application gave this run. Never recorded. */
  readonly context: Context
}

/** What the outside world says about a call in doubt; `result` is what `execute` would have returned. */
export type ReconcileAnswer =
  | { readonly happened: true; readonly result: unknown }
  | { readonly happened: false }
  | 'unknown'

/**
 * What `defineTool` makes a tool from. `Context` is what it needs of the run's context, `Output` the schema of what
 * `execute` returns.
 */
export interface ToolSpecification<
  Schema extends InputSchema,
  Context = unknown,
  Output extends InputSchema = InputSchema,
> {
  /** 1 to 128 of `A-Z a-z 0-9 _ . -`. */
  readonly name: string
  /** For the model: what the tool does, and when to use it. */
  readonly description: string
  /** A Standard Schema that also gives JSON Schema (zod, arktype, wrapped valibot …), or a JSON Schema of type object. */
  readonly input: Schema
  /** `read` changes nothing outside, so reads run side by side; `write` may, so writes run one by one. */
  readonly effect: ToolEffect
  /**
   * Does the work, with the input as the schema gives it out. What it returns (or resolves with) becomes the result:
   * a string is a text; an array of strings is a text with a line for each; nothing is a text that says it is done; what
   * `text`, `json`, `image` and `file` make, alone or in an array, is itself; any other value is its JSON. What it throws becomes the outcome `failed`, as name and message;
   * throw a `ToolError` to choose the words. After `context.signal` aborts it may still return what it has.
   */
  readonly execute: (input: InputOf<Schema>, context: ToolContext<Context>) => unknown
  /**
   * Checks what `execute` returned: what does not fit becomes `failed`, and what it was stays on record. The checked value
   * (with defaults and conversions) is the result. A Standard Schema, or a JSON Schema.
   */
  readonly output?: Output | undefined
  /** Makes what the model reads of a result, in the same forms as `execute` returns it. The ledger holds both. */
  readonly toModel?: ((result: ResultOf<Output>) => unknown) | undefined
  /**
   * The most characters of text that the model reads of a result; the ledger holds all of it. Default: that of the agent.
   */
  readonly maxResultChars?: number | undefined
  /** Tries once to read an input that does not fit, as `repairInputs` does. Default: `false`. */
  readonly repairInput?: boolean | undefined
  /** When a person has to approve a call first. Default: never. */
  readonly approval?: ApprovalPolicy<InputOf<Schema>, Context> | undefined
  /** What a resume does with a call in doubt. Default: `reconcile` when that is given, else reads `rerun`, writes `report`. */
  readonly recovery?: Recovery | undefined
  /** After this many milliseconds the runtime gives an attempt up, as `timed_out`. Default: none. */
  readonly timeoutMs?: number | undefined
  /**
   * After this many milliseconds without a report of `context.progress` the runtime gives an attempt up, as `timed_out`; each
   * report begins them anew. Default: none.
   */
  readonly quietMs?: number | undefined
  /**
   * Tries a failed call again, after growing waits, under the same idempotency key. A `write` needs `recovery: 'rerun'` for
   * it, where it may always be made again, or `when`, which knows the failures that changed nothing. Default: one attempt.
   */
  readonly retry?: RetryOptions | undefined
  /**
   * A key that tools share which use the same thing, such as a browser or a device: their calls in a run take place one at a
   * time, in the order of the requests, also where they are reads.
   */
  readonly serial?: string | undefined
  /** How many calls of the tool run at the same time in a run. Default: as many as the run's `maxConcurrency` lets. */
  readonly maxConcurrency?: number | undefined
  /** Asks the outside world whether a call in doubt took place. What it throws counts as `'unknown'`. */
  readonly reconcile?:
    | ((
        input: InputOf<Schema>,
        context: ReconcileContext<Context>,
      ) => ReconcileAnswer | Promise<ReconcileAnswer>)
    | undefined
}
