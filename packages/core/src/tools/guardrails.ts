import type { AnyContext, GuardrailDefinition } from '../events/agent-definition.ts'
import {
  type Message,
  type Outcome,
  type ResultPart,
  resultPart,
  joinText,
  type UserMessage,
  type UserPart,
} from '../events/content.ts'
import type { GuardrailFind } from '../events/signals.ts'
import { readMessages } from '../machine/history.ts'
import { listAnsweredCalls } from '../machine/required-effects.ts'
import type { CollectingState, ExecutingState, InputCheck, RunState } from '../machine/state.ts'
import { answerInTime, late } from '../values/answer-in-time.ts'
import { ConfigurationError } from '../values/errors.ts'
import type { Clock, Host } from '../values/host.ts'
import type { RunId, ToolCallId } from '../values/ids.ts'
import { isJson, type JsonObject, omitUndefined } from '../values/json.ts'
import {
  anyFunction,
  fields,
  filledText,
  maybe,
  numberFrom,
  oneOf,
  type Schema,
  requireOptions,
  trueOrFalse,
} from '../values/option.ts'
import { jsonObject, listOf } from '../values/schema.ts'
import { formatError } from '../values/text.ts'

/** The place in a run at which a guardrail checks. */
export interface GuardrailContext<Context = unknown> {
  readonly runId: RunId
  /** The active agent. */
  readonly agent: string
  readonly turn: number
  /** The history so far. */
  readonly messages: readonly Message[]
  /** The value that the application passed to this run. Never recorded. */
  readonly context: Context
}

/**
 * The verdict of a guardrail:
 * - `pass`: nothing found
 * - `block`: the reason. On input and output the run ends as `guardrail`; a tool call is not run, or its result is
 *   withheld from the model
 * - `replace`: the replacement, used from here on; `why` is recorded
 * - `record`: the finding, recorded without further effect
 */
export type GuardrailVerdict<Replacement> =
  | 'pass'
  | { readonly block: string }
  | { readonly replace: Replacement; readonly why?: string }
  | { readonly record: string }

type Check<Subject, Replacement, Context> = (
  subject: Subject,
  context: GuardrailContext<Context>,
) => GuardrailVerdict<Replacement> | Promise<GuardrailVerdict<Replacement>>

export interface GuardedInput {
  readonly text: string
  readonly message: UserMessage
}

/** The answer of the model; `text` is without reasoning. */
export interface GuardedOutput {
  readonly text: string
}

/** The tool call that the model requests. */
export interface GuardedCall {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly input: JsonObject
}

export interface GuardedResult extends GuardedCall {
  readonly outcome: Outcome
  readonly text: string
  readonly content: readonly ResultPart[]
}

interface Named {
  /** Names the guardrail in the ledger. */
  readonly name: string
  /** Milliseconds after which an unfinished check counts as failed; 60,000 if not given. */
  readonly timeoutMs?: number | undefined
}

/** Checks every message of the user before a model sees it or, with `beside`, in parallel with the model call. */
export interface InputGuardrail<Context = AnyContext> extends Named {
  readonly on: 'input'
  /** The model call does not wait: a block cancels it, and no tool starts before the check has passed. */
  readonly beside?: boolean | undefined
  readonly check: Check<GuardedInput, string | readonly UserPart[], Context>
}

/** Checks the answer before the run ends with it. It cannot take back text that has streamed. */
export interface OutputGuardrail<Context = AnyContext> extends Named {
  readonly on: 'output'
  readonly check: Check<GuardedOutput, string, Context>
}

/** Checks the input of a tool call, before the tool runs and before a person is asked. */
export interface ToolInputGuardrail<Context = AnyContext> extends Named {
  readonly on: 'tool_input'
  readonly check: Check<GuardedCall, JsonObject, Context>
}

/** Checks the result of a tool call, before the model reads it. The ledger keeps the tool's own result. */
export interface ToolOutputGuardrail<Context = AnyContext> extends Named {
  readonly on: 'tool_output'
  readonly check: Check<GuardedResult, string | readonly ResultPart[], Context>
}

/** Policy as code, around the model and the tools of an agent. A guardrail that throws or times out blocks. */
export type Guardrail<Context = AnyContext> =
  | InputGuardrail<Context>
  | OutputGuardrail<Context>
  | ToolInputGuardrail<Context>
  | ToolOutputGuardrail<Context>

/** Returns a checked guardrail. Throws a `ConfigurationError` for one that cannot work. */
export function defineGuardrail<G extends Guardrail>(made: G): G {
  requireOptions('defineGuardrail', guardrail, made)
  return made
}

const named = { name: filledText, timeoutMs: maybe(numberFrom(0)), check: anyFunction } as const
const on = oneOf(['input', 'output', 'tool_input', 'tool_output'])
const elsewhere = fields<Exclude<Guardrail, InputGuardrail>>({ ...named, on })
const onInput = fields<InputGuardrail>({ ...named, on, beside: maybe(trueOrFalse) })

/** Checks the options of one guardrail, for each `on`. */
export const guardrail: Schema = (value) =>
  (Object(value) as Partial<Guardrail>).on === 'input' ? onInput(value) : elsewhere(value)

/** A guardrail as the ledger names it. */
export function toGuardrailDefinition(made: Guardrail): GuardrailDefinition {
  const { name, on } = made
  return { name, on, ...(on === 'input' && made.beside && { beside: true as const }) }
}

/** Refuses two guardrails with the same name: the ledger could not tell them apart. */
export function requireGuardrailNames(agent: string, guardrails: readonly Guardrail[]): void {
  const names = new Set<string>()
  for (const { name } of guardrails) {
    if (names.has(name)) {
      throw new ConfigurationError(
        `Agent ${agent} has two guardrails named ${name}, and a ledger could not tell them apart. Rename one.`,
      )
    }
    names.add(name)
  }
}

/** The context in which guardrails of a run look. */
export interface Looking {
  readonly clock: Clock
  readonly context: unknown
  /** Gets what a guardrail throws: the record has its message alone. */
  readonly report?: Host['report']
}

/** Runs the guardrails of the user's messages since the last reply; each checks the result of the one before it. */
export async function guardInput(
  guardrails: readonly InputGuardrail[],
  { state, inputCheck }: { readonly state: RunState; readonly inputCheck: InputCheck },
  looking: Looking,
): Promise<readonly GuardrailFind[]> {
  const messages = readMessages(state.history)
  const context = toGuardrailContext(state, looking.context)
  const finds: GuardrailFind[] = []
  for (let index = inputCheck.from; index < messages.length; index++) {
    const message = messages[index]
    if (message?.role !== 'user') continue
    const found = await askInTurn(guardrails, message.parts, contents, looking, (guardrail, parts) =>
      guardrail.check({ text: joinText(parts), message: { role: 'user', parts } }, context),
    )
    finds.push(...found.finds.map((find) => ({ ...find, index })))
    if (finds.at(-1)?.action === 'block') return finds
  }
  return finds
}

/** Runs the guardrails of the answer. */
export async function guardOutput(
  guardrails: readonly OutputGuardrail[],
  state: CollectingState,
  looking: Looking,
): Promise<readonly GuardrailFind[]> {
  const context = toGuardrailContext(state, looking.context)
  const text = joinText(state.reply.message.parts)
  const found = await askInTurn(guardrails, text, texts, looking, (guardrail, shown) =>
    guardrail.check({ text: shown }, context),
  )
  return found.finds
}

/** Runs the guardrails of the tool results of a turn. */
export async function guardResults(
  guardrails: readonly ToolOutputGuardrail[],
  state: ExecutingState,
  looking: Looking,
): Promise<readonly GuardrailFind[]> {
  const context = toGuardrailContext(state, looking.context)
  const finds = await Promise.all(
    listAnsweredCalls(state).map(async ({ toolCallId, name, input, result }) => {
      if (result === undefined) return []
      const call = { toolCallId, name, input, outcome: result.outcome }
      const found = await askInTurn(guardrails, result.content, contents, looking, (guardrail, content) =>
        guardrail.check({ ...call, text: joinText(content), content }, context),
      )
      return found.finds.map((find) => ({ ...find, toolCallId }))
    }),
  )
  return finds.flat()
}

/** The finds of guardrails in one call, and the input that they left of it. */
export interface GuardedCheck {
  readonly finds: readonly GuardrailFind[]
  /** Absent if it is that of the model. */
  readonly input?: JsonObject
  /** Why the call is not to run. */
  readonly blocked?: string
}

/** Runs the guardrails of a tool call's input. */
export async function guardCall(
  guardrails: readonly ToolInputGuardrail[],
  call: GuardedCall,
  context: GuardrailContext<AnyContext>,
  clock: Clock,
  report?: Host['report'],
): Promise<GuardedCheck> {
  const looking = { clock, ...omitUndefined({ report }) }
  const found = await askInTurn(guardrails, call.input, inputs, looking, (guardrail, input) =>
    guardrail.check({ ...call, input }, context),
  )
  const finds = found.finds.map((find) => ({ ...find, toolCallId: call.toolCallId }))
  const last = finds.at(-1)
  if (last?.action === 'block') {
    const why = last.detail === undefined ? '' : `: ${last.detail}`
    return { finds, blocked: `The guardrail ${last.guardrail} stopped this call${why}. Nothing was run.` }
  }
  return found.value === call.input ? { finds } : { finds, input: found.value }
}

export function selectGuardrails<On extends Guardrail['on']>(
  guardrails: readonly Guardrail[],
  on: On,
  names?: readonly string[],
): readonly Extract<Guardrail, { readonly on: On }>[] {
  return guardrails.filter(
    (guardrail): guardrail is Extract<Guardrail, { readonly on: On }> =>
      guardrail.on === on && (names === undefined || names.includes(guardrail.name)),
  )
}

/** The content that guardrails check, and how one replaces it. */
interface Guarded<Value, Replacement> {
  readonly fits: (replacement: unknown) => boolean
  readonly read: (replacement: Replacement) => Value
  /** How a find records the new value. */
  readonly record?: (value: Value) => readonly ResultPart[]
}

const parts = listOf(resultPart)
const texts: Guarded<string, string> = {
  fits: (replacement) => typeof replacement === 'string',
  read: (replacement) => replacement,
  record: toContent,
}
const contents: Guarded<readonly ResultPart[], string | readonly ResultPart[]> = {
  fits: (given) => typeof given === 'string' || (isJson(given) && parts(given) === undefined),
  read: toContent,
  record: toContent,
}
const inputs: Guarded<JsonObject, JsonObject> = {
  fits: (replacement) => jsonObject(replacement) === undefined,
  read: (replacement) => replacement,
}

/** Asks guardrails in turn, each about what the one before it left, until one blocks. */
async function askInTurn<G extends Guardrail, Value, Replacement>(
  guardrails: readonly G[],
  given: Value,
  { fits, read, record }: Guarded<Value, Replacement>,
  { clock, report }: Pick<Looking, 'clock' | 'report'>,
  check: (
    guardrail: G,
    value: Value,
  ) => GuardrailVerdict<Replacement> | Promise<GuardrailVerdict<Replacement>>,
): Promise<{ readonly finds: readonly GuardrailFind[]; readonly value: Value }> {
  const finds: GuardrailFind[] = []
  let value = given
  for (const guardrail of guardrails) {
    const { name, timeoutMs } = guardrail
    let verdict: Read<Replacement>
    try {
      const answer = await answerInTime(() => check(guardrail, value), clock, timeoutMs)
      verdict =
        answer === late
          ? { find: createBlock(name, 'it did not answer in time') }
          : readVerdict(name, answer, fits)
    } catch (error) {
      // A guardrail that fails has not found nothing: it could not look.
      report?.(error, `The guardrail ${name} failed`)
      verdict = { find: createBlock(name, `it failed: ${formatError(error)}`) }
    }
    const { find, replacement } = verdict
    if (find === undefined) continue
    if (replacement !== undefined) value = read(replacement)
    finds.push({ ...find, ...(replacement !== undefined && record && { replacement: record(value) }) })
    if (find.action === 'block') break
  }
  return { finds, value }
}

interface Read<Replacement> {
  readonly find?: GuardrailFind
  readonly replacement?: Replacement
}

/** Reads a verdict. A guardrail may be written without a compiler: an invalid verdict counts as a failed check. */
function readVerdict<Replacement>(
  guardrail: string,
  verdict: GuardrailVerdict<Replacement>,
  fits: (replacement: unknown) => boolean,
): Read<Replacement> {
  if (verdict === 'pass') return {}
  if (typeof verdict !== 'object' || verdict === null)
    return {
      find: createBlock(guardrail, "it answered no verdict: 'pass', { block }, { replace } or { record }"),
    }
  if ('block' in verdict) return { find: createBlock(guardrail, toDetailText(verdict.block)) }
  if ('record' in verdict)
    return { find: { guardrail, action: 'record', detail: toDetailText(verdict.record) } }
  const { replace, why } = verdict
  if (!fits(replace)) return { find: createBlock(guardrail, 'what it put in its place does not fit there') }
  return {
    find: { guardrail, action: 'replace', ...(why !== undefined && { detail: toDetailText(why) }) },
    replacement: replace,
  }
}

function toDetailText(detail: unknown): string {
  return typeof detail === 'string' ? detail : 'something'
}

function createBlock(guardrail: string, detail: string): GuardrailFind {
  return { guardrail, action: 'block', detail }
}

function toContent(replacement: string | readonly ResultPart[]): readonly ResultPart[] {
  return typeof replacement === 'string' ? [{ type: 'text', text: replacement }] : replacement
}

/** Where the guardrails of a run look. */
export function toGuardrailContext(state: RunState, context: unknown): GuardrailContext<AnyContext> {
  const { runId, agent, turn, history } = state
  return { runId, agent, turn, messages: readMessages(history), context }
}
