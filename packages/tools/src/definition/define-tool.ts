import type {
  JsonObject,
  Reconciliation,
  Recovery,
  RunId,
  Tool,
  ToolCallId,
  ToolEffect,
} from '@tallystick/core'
import { ConfigurationError, option, recoveries, requireOptions, toolEffects } from '@tallystick/core'
import type { ApprovalPolicy } from '../approval/approval.ts'
import { approvalPolicy, judge } from '../approval/approval.ts'
import { explainIssues } from '../input/arguments.ts'
import type { ToolContext } from '../execution/executor.ts'
import { runTool } from '../execution/executor.ts'
import { endingOf } from '../execution/outcome.ts'
import type { InputOf, InputSchema, ReadSchema } from '../input/schema.ts'
import { readSchema } from '../input/schema.ts'

/** Which call in doubt is asked about. */
export interface ReconcileContext<Context = unknown> {
  readonly runId: RunId
  readonly turn: number
  readonly toolCallId: ToolCallId
  /** The start of the call that nobody knows the ending of. */
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

/** What `defineTool` makes a tool from. `Context` is what it needs of the run's context. */
export interface ToolSpecification<Schema extends InputSchema, Context = unknown> {
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
  /** When a person has to approve a call first. Default: never. */
  readonly approval?: ApprovalPolicy<InputOf<Schema>, Context> | undefined
  /** What a resume does with a call in doubt. Default: `reconcile` when that is given, else reads `rerun`, writes `report`. */
  readonly recovery?: Recovery | undefined
  /** After this many milliseconds the runtime gives a call up, as `timed_out`. Default: none. */
  readonly timeoutMs?: number | undefined
  /** Asks the outside world whether a call in doubt took place. What it throws counts as `'unknown'`. */
  readonly reconcile?:
    | ((
        input: InputOf<Schema>,
        context: ReconcileContext<Context>,
      ) => ReconcileAnswer | Promise<ReconcileAnswer>)
    | undefined
}

/**
 * Makes a tool from a schema and a function. Throws `ConfigurationError` for a definition that cannot work.
 *
 * A call's input is checked against the schema when the call is collected and again when it is run (an approver may
 * have edited it), so a schema's own conversions must not have effects.
 */
export function defineTool<Schema extends InputSchema, Context = unknown>(
  specification: ToolSpecification<Schema, Context>,
): Tool<Context> {
  assertSpecification(specification)
  const { name, description, effect, timeoutMs, approval = 'never', reconcile } = specification
  const schema = readSchema(name, specification.input)
  const body = { name, effect, schema, execute: specification.execute }
  const tool: Tool<Context> = {
    name,
    description,
    inputSchema: schema.jsonSchema,
    effect,
    recovery: recoveryOf(specification),
    ...(timeoutMs !== undefined && { timeoutMs }),
    approval: typeof approval === 'string' ? approval : 'by code',
    async check(input, context) {
      const parsed = await schema.parse(structuredClone(input)).catch((error: unknown) => String(error))
      if (typeof parsed === 'string') {
        const text = `Nothing was run: the input could not be checked against the schema of ${name} (${parsed}).`
        return { kind: 'refuse', outcome: 'invalid_input', text }
      }
      if (!parsed.ok) {
        return { kind: 'refuse', outcome: 'invalid_input', text: explainIssues(tool, input, parsed.issues) }
      }
      const { runId, turn, toolCallId, context: own } = context
      const place = { runId, turn, toolCallId, context: own }
      return judge(approval, parsed.value, { tool: name, effect, ...place })
    },
    run: (call) => runTool(body, call),
    ...(reconcile && { reconcile: (call) => askOutside(schema, effect, reconcile, call) }),
  }
  return Object.freeze(tool)
}

async function askOutside<Input, Context>(
  schema: ReadSchema<Input>,
  effect: ToolEffect,
  reconcile: (input: Input, context: ReconcileContext<Context>) => ReconcileAnswer | Promise<ReconcileAnswer>,
  call: Parameters<NonNullable<Tool<Context>['reconcile']>>[0],
): Promise<Reconciliation> {
  try {
    const { runId, turn, toolCallId, attempt, idempotencyKey, context: own, input } = call
    const parsed = await schema.parse(structuredClone(input))
    if (!parsed.ok) return { state: 'unknown' }
    const context = Object.freeze({ runId, turn, toolCallId, attempt, idempotencyKey, context: own })
    const answer = await reconcile(parsed.value, context)
    // A lookup that answered something else has not answered.
    if (typeof answer !== 'object' || typeof answer.happened !== 'boolean') return { state: 'unknown' }
    return answer.happened ? { state: 'done', ...endingOf(answer.result, effect) } : { state: 'not_done' }
  } catch {
    return { state: 'unknown' }
  }
}

function recoveryOf<Schema extends InputSchema, Context>(
  specification: ToolSpecification<Schema, Context>,
): Recovery {
  if (specification.recovery !== undefined) return specification.recovery
  if (specification.reconcile) return 'reconcile'
  return specification.effect === 'read' ? 'rerun' : 'report'
}

const { anyFunction, fields, filledText, maybe, milliseconds, oneOf, valueThat } = option

const toolOptions = fields<ToolSpecification<JsonObject>>(
  {
    name: valueThat(
      'a name that models take: 1 to 128 of A-Z a-z 0-9 _ . and -',
      (value) => typeof value === 'string' && /^[A-Za-z0-9_.-]{1,128}$/.test(value),
    ),
    description: filledText,
    input: valueThat('a schema, such as z.object({ … })', (value) => value != null),
    effect: valueThat("'read' where it changes nothing outside, else 'write'", (value) =>
      toolEffects.some((effect) => effect === value),
    ),
    execute: anyFunction,
    approval: maybe(approvalPolicy),
    recovery: maybe(oneOf(recoveries)),
    timeoutMs: maybe(milliseconds),
    reconcile: maybe(anyFunction),
  },
  {
    ...{ parameters: 'input', schema: 'input', inputSchema: 'input', args: 'input' },
    ...{ run: 'execute', handler: 'execute', func: 'execute', invoke: 'execute', call: 'execute' },
    ...{ needsApproval: 'approval', requireApproval: 'approval', requiresApproval: 'approval' },
  },
)

/** A definition comes from code that may be JavaScript, so nothing about it is believed. */
function assertSpecification<Schema extends InputSchema, Context>(
  specification: ToolSpecification<Schema, Context>,
): void {
  const { name } = Object(specification) as { readonly name?: unknown }
  requireOptions(
    typeof name === 'string' && name ? `The tool ${name}` : 'defineTool',
    toolOptions,
    specification,
  )
  const fault = faultOfRecovery(specification)
  if (fault !== undefined) throw new ConfigurationError(`The tool ${specification.name} ${fault}`)
}

function faultOfRecovery<Schema extends InputSchema, Context>(
  specification: ToolSpecification<Schema, Context>,
): string | undefined {
  const { recovery, reconcile } = specification
  if (recovery === undefined) return undefined
  if (recovery === 'reconcile' && reconcile === undefined) {
    return "has recovery 'reconcile' but no reconcile function. Give the one that asks the outside world."
  }
  if (recovery === 'reconcile' || reconcile === undefined) return undefined
  return `has a reconcile function that recovery '${recovery}' never calls. Leave one of the two out.`
}
