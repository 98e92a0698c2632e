import type { Tool } from '@tallystick/core'
import { omitUndefined, option } from '@tallystick/core/kit'
import type {
  CallVerdict,
  JsonObject,
  Reconciliation,
  Recovery,
  ToolEffect,
  UnfitInput,
} from '@tallystick/core/vocabulary'
import { judge } from '../approval/approval.ts'
import { runTool } from '../execution/executor.ts'
import { endingOf } from '../execution/outcome.ts'
import { retryPolicyOf } from '../execution/retry.ts'
import { explainIssues } from '../input/arguments.ts'
import type { Parsed } from '../input/input-issue.ts'
import { copyOfInput } from '../input/input-copy.ts'
import { type InputOf, type InputSchema, type ReadSchema, readOutput, readSchema } from '../input/schema.ts'
import { repairedInput } from '../repair/repaired-input.ts'
import { assertSpecification } from './specification-check.ts'
import type { ReconcileAnswer, ReconcileContext, ToolSpecification } from './tool-specification.ts'

/**
 * Makes a tool from a schema and a function. Throws `ConfigurationError` for a definition that cannot work. The runtime
 * checks a call's input against the schema when it collects the call, and again before it runs it, since an approver
 * may have edited it. So the schema's conversions must have no side effects.
 */
export function defineTool<
  Schema extends InputSchema,
  Context = unknown,
  Output extends InputSchema = JsonObject,
>(specification: ToolSpecification<Schema, Context, Output>): Tool<Context> {
  assertSpecification(specification)
  return Object.freeze(toolOf(specification, readSchema(specification.name, specification.input)))
}

/** A tool of a definition that was checked, with a schema that was read. */
export function toolOf<
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
    maxResultChars,
    output,
    toModel,
    repairInput,
  } = specification
  const results = { toModel, output: output === undefined ? undefined : readOutput(name, output) }
  const body = { name, effect, schema, execute: specification.execute, retry, ...results }
  return {
    name,
    description,
    inputSchema: schema.jsonSchema,
    effect,
    recovery: recoveryOf(specification),
    ...omitUndefined({ timeoutMs, quietMs, serial, maxConcurrency, repeats, maxResultChars }),
    ...(retry && { retry: retryPolicyOf(retry) }),
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
        parsing = schema.parse(copyOfInput(input))
      } catch (error) {
        return unchecked(error)
      }
      return option.isThenable(parsing) ? parsing.then(verdictOn, unchecked) : verdictOn(parsing)
    },
    ...(repairInput === true && {
      repair: (unfit: UnfitInput) => repairedInput({ inputSchema: schema.jsonSchema }, unfit),
    }),
    run: (call) => runTool(body, call),
    ...(reconcile && { reconcile: (call) => askOutside(schema, effect, reconcile, call) }),
  }
}

async function askOutside<Input, Context>(
  schema: ReadSchema<Input>,
  effect: ToolEffect,
  reconcile: (input: Input, context: ReconcileContext<Context>) => ReconcileAnswer | Promise<ReconcileAnswer>,
  call: Parameters<NonNullable<Tool<Context>['reconcile']>>[0],
): Promise<Reconciliation> {
  try {
    const { runId, turn, toolCallId, attempt, idempotencyKey, context: own, input } = call
    const parsed = await schema.parse(copyOfInput(input))
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

function recoveryOf(
  specification: Pick<ToolSpecification<JsonObject>, 'effect' | 'recovery'> & {
    readonly reconcile?: unknown
  },
): Recovery {
  if (specification.recovery !== undefined) return specification.recovery
  if (specification.reconcile) return 'reconcile'
  return specification.effect === 'read' ? 'rerun' : 'report'
}
