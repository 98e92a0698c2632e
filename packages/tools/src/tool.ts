import type { Reconciliation, Recovery, RunId, Tool, ToolCallId, ToolEffect } from '@tallystick/core'
import { ConfigurationError, recoveries, toolEffects } from '@tallystick/core'
import type { ApprovalPolicy } from './approval.ts'
import { judge } from './approval.ts'
import { explainIssues } from './arguments.ts'
import type { ToolContext } from './executor.ts'
import { runTool } from './executor.ts'
import { endingOf } from './outcome.ts'
import type { InputOf, InputSchema, ReadSchema } from './schema.ts'
import { readSchema } from './schema.ts'

/** Which call in doubt is asked about. */
export interface ReconcileContext {
  readonly runId: RunId
  readonly turn: number
  readonly toolCallId: ToolCallId
  /** The start of the call that nobody knows the ending of. */
  readonly attempt: number
  /** The key that `execute` was given, to look the effect up by. */
  readonly idempotencyKey: string
}

/** What the outside world says about a call in doubt; `result` is what `execute` would have returned. */
export type ReconcileAnswer =
  | { readonly happened: true; readonly result: unknown }
  | { readonly happened: false }
  | 'unknown'

/** What `defineTool` makes a tool from. */
export interface ToolSpecification<Schema extends InputSchema> {
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
   * a string is a text; nothing is a text that says it is done; what `text`, `image` and `file` make, alone or in an
   * array, is itself; any other value is its JSON. What it throws becomes the outcome `failed`, as name and message;
   * throw a `ToolError` to choose the words. After `context.signal` aborts it may still return what it has.
   */
  readonly execute: (input: InputOf<Schema>, context: ToolContext) => unknown
  /** When a person has to approve a call first. Default: never. */
  readonly approval?: ApprovalPolicy<InputOf<Schema>>
  /** What a resume does with a call in doubt. Default: `reconcile` when that is given, else reads `rerun`, writes `report`. */
  readonly recovery?: Recovery
  /** After this many milliseconds the runtime gives a call up, as `timed_out`. Default: none. */
  readonly timeoutMs?: number
  /** Asks the outside world whether a call in doubt took place. What it throws counts as `'unknown'`. */
  readonly reconcile?: (
    input: InputOf<Schema>,
    context: ReconcileContext,
  ) => ReconcileAnswer | Promise<ReconcileAnswer>
}

/**
 * Makes a tool from a schema and a function. Throws `ConfigurationError` for a definition that cannot work.
 *
 * A call's input is checked against the schema when the call is collected and again when it is run (an approver may
 * have edited it), so a schema's own conversions must not have effects.
 */
export function defineTool<Schema extends InputSchema>(specification: ToolSpecification<Schema>): Tool {
  const { name, description, effect, timeoutMs, approval = 'never', reconcile } = specification
  assertSpecification(specification)
  const schema = readSchema(name, specification.input)
  const body = { name, effect, schema, execute: specification.execute }
  const tool: Tool = {
    name,
    description,
    inputSchema: schema.jsonSchema,
    effect,
    recovery: recoveryOf(specification),
    ...(timeoutMs !== undefined && { timeoutMs }),
    async check(input, context) {
      const parsed = await schema.parse(structuredClone(input)).catch((error: unknown) => String(error))
      if (typeof parsed === 'string') {
        const text = `Nothing was run: the input could not be checked against the schema of ${name} (${parsed}).`
        return { kind: 'refuse', outcome: 'invalid_input', text }
      }
      if (!parsed.ok) {
        return { kind: 'refuse', outcome: 'invalid_input', text: explainIssues(tool, input, parsed.issues) }
      }
      const { runId, turn, toolCallId } = context
      return judge(approval, parsed.value, { tool: name, effect, runId, turn, toolCallId })
    },
    run: (call) => runTool(body, call),
    ...(reconcile && { reconcile: (call) => askOutside(schema, effect, reconcile, call) }),
  }
  return Object.freeze(tool)
}

async function askOutside<Input>(
  schema: ReadSchema<Input>,
  effect: ToolEffect,
  reconcile: (input: Input, context: ReconcileContext) => ReconcileAnswer | Promise<ReconcileAnswer>,
  call: Parameters<NonNullable<Tool['reconcile']>>[0],
): Promise<Reconciliation> {
  try {
    const { runId, turn, toolCallId, attempt, idempotencyKey, input } = call
    const parsed = await schema.parse(structuredClone(input))
    if (!parsed.ok) return { state: 'unknown' }
    const context = Object.freeze({ runId, turn, toolCallId, attempt, idempotencyKey })
    const answer = await reconcile(parsed.value, context)
    // A lookup that answered something else has not answered.
    if (typeof answer !== 'object' || typeof answer.happened !== 'boolean') return { state: 'unknown' }
    return answer.happened ? { state: 'done', ...endingOf(answer.result, effect) } : { state: 'not_done' }
  } catch {
    return { state: 'unknown' }
  }
}

function recoveryOf<Schema extends InputSchema>(specification: ToolSpecification<Schema>): Recovery {
  if (specification.recovery !== undefined) return specification.recovery
  if (specification.reconcile) return 'reconcile'
  return specification.effect === 'read' ? 'rerun' : 'report'
}

/** The longest wait that timers take; beyond it they go off at once. */
const timeoutMsMax = 2_147_483_647

/** A definition comes from code that may be JavaScript, so nothing about it is believed. */
function assertSpecification<Schema extends InputSchema>(specification: ToolSpecification<Schema>): void {
  const { name } = specification
  if (typeof name !== 'string' || name === '') {
    throw new ConfigurationError(
      'A tool has no name, so a model cannot ask for it. Give it one, such as "get_weather".',
    )
  }
  const fault = faultOfBody(specification) ?? faultOfPolicies(specification) ?? faultOfRecovery(specification)
  if (fault !== undefined) throw new ConfigurationError(`The tool ${name} ${fault}`)
}

function faultOfBody<Schema extends InputSchema>(
  specification: ToolSpecification<Schema>,
): string | undefined {
  const { name, description, effect, execute } = specification
  if (!/^[A-Za-z0-9_.-]{1,128}$/.test(name)) {
    return 'has a name that models refuse. Use 1 to 128 of A-Z a-z 0-9 _ . and -.'
  }
  if (typeof description !== 'string' || description.trim() === '') {
    return 'has no description, so a model cannot tell when to use it. Say what it does and when to use it.'
  }
  if (!toolEffects.includes(effect)) {
    return "does not say its effect. Set effect to 'read' if it changes nothing outside, else to 'write'."
  }
  return typeof execute === 'function'
    ? undefined
    : 'has no execute function. Give the one that does the work.'
}

function faultOfPolicies<Schema extends InputSchema>(
  specification: ToolSpecification<Schema>,
): string | undefined {
  const { approval = 'never', timeoutMs = 1 } = specification
  if (approval !== 'always' && approval !== 'never' && typeof approval !== 'function') {
    return "has an approval that is no policy. Use 'always', 'never' or a function of the input."
  }
  if (typeof timeoutMs === 'number' && timeoutMs > 0 && timeoutMs <= timeoutMsMax) return undefined
  return `has a timeoutMs that is no time. Use milliseconds from 1 to ${timeoutMsMax}, or leave it out.`
}

function faultOfRecovery<Schema extends InputSchema>(
  specification: ToolSpecification<Schema>,
): string | undefined {
  const { recovery, reconcile } = specification
  if (recovery === undefined) return undefined
  if (!recoveries.includes(recovery)) return `has an unknown recovery. Use one of ${recoveries.join(', ')}.`
  if (recovery === 'reconcile' && typeof reconcile !== 'function') {
    return "has recovery 'reconcile' but no reconcile function. Give the one that asks the outside world."
  }
  if (recovery === 'reconcile' || reconcile === undefined) return undefined
  return `has a reconcile function that recovery '${recovery}' never calls. Leave one of the two out.`
}
