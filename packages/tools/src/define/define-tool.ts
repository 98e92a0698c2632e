import type { StandardSchemaV1 } from '@standard-schema/spec'
import { ConfigurationError, type RunId, type Tool } from '@tallystick/core'
import {
  copyJson,
  leastResultChars,
  omitUndefined,
  option,
  recoveries,
  requireOptions,
  someRepeats,
  toolEffects,
  type UnfitInput,
} from '@tallystick/core/internal'
import type {
  CallVerdict,
  JsonObject,
  Recovery,
  Repeats,
  ToolCallId,
  ToolEffect,
} from '@tallystick/core/vocabulary'
import { approvalPolicy, type ApprovalPolicy, judge } from './approval.ts'
import { explainIssues, type Parsed } from './input-issues.ts'
import { createEnding } from './outcome.ts'
import { repairUnfit } from './repair.ts'
import {
  type Deferral,
  retryOptions,
  type RetryOptions,
  toRetryPolicy,
  runTool,
  type ToolContext,
} from './run-tool.ts'
import { type InputOf, type InputSchema, readOutput, type ReadSchema, readSchema } from './schema.ts'

/**
 * Input of `defineTool`. `Context` is the type of the run's context that the tool needs, `Output` the schema of what
 * `execute` returns.
 */
export interface ToolSpecification<
  Schema extends InputSchema,
  Context = unknown,
  Output extends InputSchema = InputSchema,
  Name extends string = string,
> {
  /** 1 to 128 of `A-Z a-z 0-9 _ . -`. */
  readonly name: Name
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
  /** Tells a resume how to treat a call in doubt. Default: `reconcile` if that is given, else reads `rerun`, writes `report`. */
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
   * For a tool that is meant to be asked again, such as a poll of a job: equal answers in a row then do not count for
   * `maxRepeats`. `'allowed'`: as often as the model likes. `{ minIntervalMs: 5_000 }`: the next equal call waits until five
   * seconds after the last answer, so that a run does not spend its turns on asking. Default: a `read` that gave the same answer
   * `maxRepeats` times, while nothing else happened, is answered from the record.
   */
  readonly repeats?: Repeats | undefined
  /**
   * The model gets a handle at once and the run goes on; the result comes as a message, before the next turn. A run that would end with
   * its answer waits for it; with `leave` it ends without it. A write goes on beside others. Not with `retry`, or with `recovery` `ask` or
   * `reconcile`; with guardrails on tool output, the run waits for each call. Default: `false`.
   */
  readonly background?: boolean | 'leave' | undefined
  /** Looks up whether a call in doubt took place. If it throws, the call stays in doubt, and the host gets the error. */
  readonly reconcile?:
    | ((
        input: InputOf<Schema>,
        context: ReconcileContext<Context>,
      ) => ReconcileAnswer | Promise<ReconcileAnswer>)
    | undefined
}

/**
 * A tool that keeps its name and the type of the input that a model writes for it. The types of a chat page are made of
 * these: see `InferUIMessage` of `@tallystick/server/client`.
 */
export interface DefinedTool<
  Name extends string,
  Schema extends InputSchema,
  in Context = unknown,
> extends Tool<Context> {
  readonly name: Name
  /** Exists for the compiler only. */
  readonly '~input'?: Schema extends StandardSchemaV1 ? StandardSchemaV1.InferInput<Schema> : JsonObject
}

/** The input of `toModel`: the parsed value of the output schema; without one, any value. */
export type ResultOf<Output extends InputSchema> = Output extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<Output>
  : // oxlint-disable-next-line typescript/no-explicit-any -- without a schema only the author knows the type
    any

/** Result of `execute`: a value that the output schema takes, at once or later, or a call that is settled later. */
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
  /** The value that the application gave this run. Never recorded. */
  readonly context: Context
}

/** Says if a call in doubt took place; `result` is what `execute` would have returned. */
export type ReconcileAnswer =
  | { readonly happened: true; readonly result: unknown }
  | { readonly happened: false }
  | 'unknown'

/**
 * Makes a tool from a schema and a function. Throws `ConfigurationError` for a definition that cannot work. The runtime
 * checks a call's input against the schema when it collects the call, and again before it runs it, since an approver
 * may have edited it. So the schema's conversions must have no side effects.
 */
export function defineTool<
  Schema extends InputSchema,
  Context = unknown,
  Output extends InputSchema = JsonObject,
  Name extends string = string,
>(specification: ToolSpecification<Schema, Context, Output, Name>): DefinedTool<Name, Schema, Context> {
  assertSpecification(specification)
  const tool = createTool(specification, readSchema(specification.name, specification.input))
  return Object.freeze(tool) as DefinedTool<Name, Schema, Context>
}

/** A tool of a definition that was checked, with a schema that was read. */
export function createTool<
  Schema extends InputSchema,
  Context = unknown,
  Output extends InputSchema = JsonObject,
>(
  specification: Omit<ToolSpecification<Schema, Context, Output>, 'input'>,
  schema: ReadSchema<InputOf<Schema>>,
): Tool<Context> {
  const { name, description, effect, retry, approval = 'never', reconcile } = specification
  const {
    timeoutMs,
    quietMs,
    serial,
    maxConcurrency,
    repeats,
    background,
    maxResultChars,
    output,
    toModel,
    repairInput,
    recovery,
  } = specification
  const results = { toModel, output: output === undefined ? undefined : readOutput(name, output) }
  const body = { name, effect, schema, execute: specification.execute, retry, ...results }
  return {
    name,
    description,
    inputSchema: schema.jsonSchema,
    effect,
    recovery: recovery ?? (reconcile ? 'reconcile' : effect === 'read' ? 'rerun' : 'report'),
    ...omitUndefined({ timeoutMs, quietMs, serial, maxConcurrency, repeats, maxResultChars }),
    ...(background && { background: background === 'leave' ? ('leave' as const) : ('wait' as const) }),
    ...(retry && { retry: toRetryPolicy(retry) }),
    approval: typeof approval === 'string' ? approval : 'by code',
    check(input, context) {
      const verdictOn = (parsed: Parsed<InputOf<Schema>>): CallVerdict | Promise<CallVerdict> => {
        if (!parsed.ok) {
          const shown = { name, inputSchema: schema.jsonSchema }
          return {
            kind: 'refuse',
            outcome: 'invalid_input',
            text: explainIssues(shown, input, parsed.issues),
          }
        }
        const { runId, turn, toolCallId, context: own } = context
        const place = { runId, turn, toolCallId, context: own }
        return judge(approval, parsed.value, { tool: name, effect, ...place })
      }
      const unchecked = (error: unknown): CallVerdict => {
        const text = `Nothing was run: the input could not be checked against the schema of ${name} (${String(error)}).`
        return { kind: 'refuse', outcome: 'invalid_input', text }
      }
      let parsing: ReturnType<typeof schema.parse>
      try {
        parsing = schema.parse(copyJson(input))
      } catch (error) {
        return unchecked(error)
      }
      return option.isThenable(parsing) ? parsing.then(verdictOn, unchecked) : verdictOn(parsing)
    },
    ...(repairInput === true && {
      repair: (unfit: UnfitInput) => repairUnfit({ inputSchema: schema.jsonSchema }, unfit),
    }),
    run: (call) => runTool(body, call),
    ...(reconcile && {
      async reconcile({ runId, turn, toolCallId, attempt, idempotencyKey, context: own, input }) {
        const parsed = await schema.parse(copyJson(input))
        if (!parsed.ok) return { state: 'unknown' }
        const doubt = Object.freeze({ runId, turn, toolCallId, attempt, idempotencyKey, context: own })
        const answer: unknown = await reconcile(parsed.value, doubt)
        if (answer === 'unknown') return { state: 'unknown' }
        // The runtime reports this error, and the call stays in doubt.
        const { happened, result } = Object(answer) as { happened?: unknown; result?: unknown }
        if (typeof happened !== 'boolean') {
          throw new TypeError(
            "reconcile has to return { happened: true, result }, { happened: false } or 'unknown'",
          )
        }
        return happened ? { state: 'done', ...createEnding(result, effect) } : { state: 'not_done' }
      },
    }),
  }
}

const {
  anyFunction,
  fields,
  filledText,
  maybe,
  milliseconds,
  numberFrom,
  oneOf,
  textOr,
  trueOrFalse,
  valueThat,
} = option

const toolOptions = fields<ToolSpecification<JsonObject>>(
  {
    name: valueThat(
      'a text of 1 to 128 characters, each of A-Z a-z 0-9 _ . and -',
      (value) => typeof value === 'string' && /^[A-Za-z0-9_.-]{1,128}$/.test(value),
      { showsText: true },
    ),
    description: filledText,
    input: valueThat('a schema, such as z.object({ … })', (value) => value != null),
    effect: textOr(
      toolEffects,
      valueThat("'read' where it changes nothing outside, else 'write'", () => false),
    ),
    execute: anyFunction,
    repairInput: maybe(trueOrFalse),
    approval: maybe(approvalPolicy),
    recovery: maybe(oneOf(recoveries)),
    timeoutMs: maybe(milliseconds),
    quietMs: maybe(milliseconds),
    retry: maybe(retryOptions),
    serial: maybe(filledText),
    maxConcurrency: maybe(numberFrom(1, { whole: true })),
    repeats: maybe(someRepeats),
    background: maybe(
      valueThat("true, false, or 'leave'", (value) => typeof value === 'boolean' || value === 'leave'),
    ),
    output: maybe(
      valueThat('a schema, such as z.object({ … })', (value) => value != null && typeof value !== 'string'),
    ),
    toModel: maybe(anyFunction),
    maxResultChars: maybe(numberFrom(leastResultChars, { whole: true })),
    reconcile: maybe(anyFunction),
  },
  {
    ...{ parameters: 'input', schema: 'input', inputSchema: 'input', args: 'input' },
    ...{ run: 'execute', handler: 'execute', func: 'execute', invoke: 'execute', call: 'execute' },
    ...{ needsApproval: 'approval', requireApproval: 'approval', requiresApproval: 'approval' },
    ...{ outputSchema: 'output', toModelOutput: 'toModel' },
    ...{ heartbeatMs: 'quietMs', heartbeatTimeoutMs: 'quietMs', idleMs: 'quietMs' },
    ...{ maxResultSize: 'maxResultChars', maxResultSizeChars: 'maxResultChars' },
  },
)

/** A definition comes from code that may be JavaScript, so nothing about it is believed. */
export function assertSpecification<Schema extends InputSchema, Context, Output extends InputSchema>(
  specification: ToolSpecification<Schema, Context, Output>,
): void {
  const { name } = Object(specification) as { readonly name?: unknown }
  requireOptions(
    typeof name === 'string' && name ? `The tool ${name}` : 'defineTool',
    toolOptions,
    specification,
  )
  const { effect, recovery, reconcile, retry } = specification
  const refuse = (fault: string): never => {
    throw new ConfigurationError(`The tool ${specification.name} ${fault}`)
  }
  if (recovery === 'reconcile' && reconcile === undefined) {
    refuse(
      "has recovery 'reconcile' but no reconcile. Give this function, which looks up whether a call took place.",
    )
  }
  if (recovery !== undefined && recovery !== 'reconcile' && reconcile !== undefined) {
    refuse(`has a reconcile function that recovery '${recovery}' never calls. Leave one of the two out.`)
  }
  if (retry !== undefined && effect === 'write' && recovery !== 'rerun' && !retry.when) {
    refuse(
      'is a write with retry, and a failed write may have taken effect. ' +
        "Give recovery 'rerun' where a call may be made again under the same idempotency key, or retry.when, which answers " +
        'true for the failures that have changed nothing.',
    )
  }
}
