import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { RunId } from '@tallystick/core'
import type { Recovery, ToolCallId, ToolEffect } from '@tallystick/core/vocabulary'
import type { ApprovalPolicy } from '../approval/approval.ts'
import type { Deferral } from '../execution/deferral.ts'
import type { ToolContext } from '../execution/executor.ts'
import type { RetryOptions } from '../execution/retry.ts'
import type { InputOf, InputSchema } from '../input/schema.ts'

/** The input of `toModel`: the parsed value of the output schema; without one, any value. */
export type ResultOf<Output extends InputSchema> = Output extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<Output>
  : // oxlint-disable-next-line typescript/no-explicit-any -- without a schema only the author knows the type
    any

/** What `execute` may return: what the output schema takes, at once or later, or that the call is settled later. */
export type ReturnedFor<Output extends InputSchema> = Output extends StandardSchemaV1
  ? AtOnceOrLater<Known<StandardSchemaV1.InferInput<Output>> | Deferral>
  : // oxlint-disable-next-line typescript/no-generated-empty-object-type -- of any value nothing is known
    AtOnceOrLater<AnyValue>

type AtOnceOrLater<Value> = Value | PromiseLike<Value>

type Known<Value> = unknown extends Value ? AnyValue : Value

/**
 * Any value at all. The compiler reads the body of `execute` before it knows the schema: what is spelled out here has it take
 * `'passed'` in a result for that text, where `unknown` would have it take it for any.
 */
type AnyValue =
  | ''
  | 0
  | true
  | { readonly [name: string]: AnyValue }
  | readonly AnyValue[]
  | {}
  | null
  | undefined
  | void

/** The call in doubt that `reconcile` looks up. */
export interface ReconcileContext<Context = unknown> {
  readonly runId: RunId
  readonly turn: number
  readonly toolCallId: ToolCallId
  /** The attempt whose ending is unknown. */
  readonly attempt: number
  /** The key that `execute` got, to look the effect up by. */
  readonly idempotencyKey: string
  /** What the application gave this run. Never recorded. */
  readonly context: Context
}

/** Whether a call in doubt took place; `result` is what `execute` would have returned. */
export type ReconcileAnswer =
  | { readonly happened: true; readonly result: unknown }
  | { readonly happened: false }
  | 'unknown'

/**
 * Input of `defineTool`. `Context` is the type of the run's context that the tool needs, `Output` the schema of what
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
   * Does the work, with the parsed input. What it returns (or resolves with) becomes the result: a string is a text; an
   * array of strings is a text with a line for each; nothing is a text that says it is done; parts made by `text`,
   * `json`, `image` and `file`, alone or in an array, stay as they are; any other value becomes JSON. If it throws, the
   * call ends as `failed` with the error's name and message; throw a `ToolError` to choose the words. After
   * `context.signal` aborts it may still return what it has.
   */
  readonly execute: (input: InputOf<Schema>, context: ToolContext<Context>) => ReturnedFor<Output>
  /**
   * Checks what `execute` returned: if it does not fit, the call ends as `failed`, and the ledger holds the value.
   * Otherwise the parsed value (with defaults and conversions) is the result. A Standard Schema, against which the compiler
   * checks `execute` and `toModel`, or a JSON Schema.
   */
  readonly output?: Output | undefined
  /** Returns what the model reads of a result, in the same forms as `execute`. The ledger holds both. */
  readonly toModel?: ((result: ResultOf<Output>) => unknown) | undefined
  /**
   * The most characters of text that the model reads of a result; the ledger holds all of it. Default: that of the agent.
   */
  readonly maxResultChars?: number | undefined
  /** Tries once to repair an input that does not fit, as `repairInputs` does. Default: `false`. */
  readonly repairInput?: boolean | undefined
  /** When a person has to approve a call first. Default: never. */
  readonly approval?: ApprovalPolicy<InputOf<Schema>, Context> | undefined
  /** What a resume does with a call in doubt. Default: `reconcile` when that is given, else reads `rerun`, writes `report`. */
  readonly recovery?: Recovery | undefined
  /** The longest time of an attempt, in milliseconds; then it ends as `timed_out`. Default: none. */
  readonly timeoutMs?: number | undefined
  /**
   * The longest time without a report of `context.progress`, in milliseconds; then the attempt ends as `timed_out`.
   * Default: none.
   */
  readonly quietMs?: number | undefined
  /**
   * Tries a failed call again, after growing waits, under the same idempotency key. A `write` also needs `recovery:
   * 'rerun'`, if it may always be made again, or `when`, which selects failures that changed nothing. Default: one
   * attempt.
   */
  readonly retry?: RetryOptions | undefined
  /**
   * A key that tools share which use the same thing, such as a browser or a device: their calls in a run execute one at
   * a time, in the order of the requests, even if they are reads.
   */
  readonly serial?: string | undefined
  /** How many calls of the tool may run at the same time in a run. Default: up to the run's `maxConcurrency`. */
  readonly maxConcurrency?: number | undefined
  /**
   * `'allowed'` for a tool that is meant to be asked again, such as a poll of a job: equal answers in a row then do not
   * count for `maxRepeats`. Default: a `read` that gave the same answer `maxRepeats` times, while nothing else
   * happened, is answered from the record.
   */
  readonly repeats?: 'allowed' | undefined
  /** Looks up whether a call in doubt took place. If it throws, the answer is `'unknown'`. */
  readonly reconcile?:
    | ((
        input: InputOf<Schema>,
        context: ReconcileContext<Context>,
      ) => ReconcileAnswer | Promise<ReconcileAnswer>)
    | undefined
}
