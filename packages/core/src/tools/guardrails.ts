import type { AnyContext, GuardrailDefinition } from '../events/agent-definition.ts'
import {
  type Message,
  type Outcome,
  type ResultPart,
  resultPart,
  textOf,
  type UserMessage,
  type UserPart,
} from '../events/content.ts'
import type { GuardrailFind } from '../events/signals.ts'
import { messagesOf } from '../machine/history.ts'
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
  type OptionCheck,
  requireOptions,
  trueOrFalse,
} from '../values/option.ts'
import { jsonObject, listOf } from '../values/schema.ts'
import { textOfError } from '../values/text.ts'

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

/** A message of the user. */
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

/** The result of a tool call. */
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
export const guardrail: OptionCheck = (value) =>
  (Object(value) as Partial<Guardrail>).on === 'input' ? onInput(value) : elsewhere(value)

/** A guardrail as the ledger names it. */
export function definedGuardrail(made: Guardrail): GuardrailDefinition {
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
export async function findsInInput(
  guardrails: readonly InputGuardrail[],
  { state, inputCheck }: { readonly state: RunState; readonly inputCheck: InputCheck },
  { clock, context: own, report }: Looking,
): Promise<readonly GuardrailFind[]> {
  const messages = messagesOf(state.history)
  const context = contextOf(state, own)
  const finds: GuardrailFind[] = []
  for (let index = inputCheck.from; index < messages.length; index++) {
    const message = messages[index]
    if (message?.role !== 'user') continue
    let { parts } = message
    for (const guardrail of guardrails) {
      const subject = { text: textOf(parts), message: { role: 'user' as const, parts } }
      const { find, replacement } = await ask(guardrail, () => guardrail.check(subject, context), {
        clock,
        report,
        fits: isContent,
      })
      if (find === undefined) continue
      const content = replacement === undefined ? undefined : contentOf(replacement)
      finds.push({ ...find, index, ...omitUndefined({ replacement: content }) })
      if (find.action === 'block') return finds
      parts = content ?? parts
    }
  }
  return finds
}

/** Runs the guardrails of the answer. */
export async function findsInOutput(
  guardrails: readonly OutputGuardrail[],
  state: CollectingState,
  { clock, context, report }: Looking,
): Promise<readonly GuardrailFind[]> {
  const finds: GuardrailFind[] = []
  let text = textOf(state.reply.message.parts)
  for (const guardrail of guardrails) {
    const { find, replacement } = await ask(
      guardrail,
      () => guardrail.check({ text }, contextOf(state, context)),
      {
        clock,
        report,
        fits: isText,
      },
    )
    if (find === undefined) continue
    finds.push({ ...find, ...(replacement !== undefined && { replacement: contentOf(replacement) }) })
    if (find.action === 'block') return finds
    text = replacement ?? text
  }
  return finds
}

/** Runs the guardrails of the tool results of a turn. */
export async function findsInResults(
  guardrails: readonly ToolOutputGuardrail[],
  state: ExecutingState,
  { clock, context, report }: Looking,
): Promise<readonly GuardrailFind[]> {
  const finds = await Promise.all(
    listAnsweredCalls(state).map(async ({ toolCallId, name, input, result }) => {
      const mine: GuardrailFind[] = []
      if (result === undefined) return mine
      let { content } = result
      for (const guardrail of guardrails) {
        const { outcome } = result
        const subject = { toolCallId, name, input, outcome, text: textOf(content), content }
        const { find, replacement } = await ask(
          guardrail,
          () => guardrail.check(subject, contextOf(state, context)),
          {
            clock,
            report,
            fits: isContent,
          },
        )
        if (find === undefined) continue
        const next = replacement === undefined ? undefined : contentOf(replacement)
        mine.push({ ...find, toolCallId, ...omitUndefined({ replacement: next }) })
        if (find.action === 'block') break
        content = next ?? content
      }
      return mine
    }),
  )
  return finds.flat()
}

/** The finds of guardrails in one call, and the input that they left of it. */
export interface GuardedCheck {
  readonly finds: readonly GuardrailFind[]
  /** Where not that of the model. */
  readonly input?: JsonObject
  /** Why the call is not to run. */
  readonly blocked?: string
}

/** Runs the guardrails of a tool call's input. */
export async function findsInCall(
  guardrails: readonly ToolInputGuardrail[],
  call: GuardedCall,
  context: GuardrailContext<AnyContext>,
  clock: Clock,
  report?: Host['report'],
): Promise<GuardedCheck> {
  const finds: GuardrailFind[] = []
  let input: JsonObject | undefined
  for (const guardrail of guardrails) {
    const subject = { ...call, input: input ?? call.input }
    const { find, replacement } = await ask(guardrail, () => guardrail.check(subject, context), {
      clock,
      report,
      fits: isObject,
    })
    if (find === undefined) continue
    finds.push({ ...find, toolCallId: call.toolCallId })
    if (find.action === 'block') {
      const why = find.detail === undefined ? '' : `: ${find.detail}`
      return { finds, blocked: `The guardrail ${guardrail.name} stopped this call${why}. Nothing was run.` }
    }
    input = replacement ?? input
  }
  return { finds, ...omitUndefined({ input }) }
}

/** The guardrails of one kind. */
export function guardrailsFor<On extends Guardrail['on']>(
  guardrails: readonly Guardrail[],
  on: On,
  names?: readonly string[],
): readonly Extract<Guardrail, { readonly on: On }>[] {
  return guardrails.filter(
    (guardrail): guardrail is Extract<Guardrail, { readonly on: On }> =>
      guardrail.on === on && (names === undefined || names.includes(guardrail.name)),
  )
}

/** Whose answer is waited for, and what it may put in the place of what it looked at. */
interface Asking {
  readonly clock: Clock
  readonly report: Host['report'] | undefined
  readonly fits: (replacement: unknown) => boolean
}

const parts = listOf(resultPart)
const isText = (replacement: unknown): boolean => typeof replacement === 'string'
const isContent = (replacement: unknown): boolean =>
  isText(replacement) || (isJson(replacement) && parts(replacement) === undefined)
const isObject = (replacement: unknown): boolean => jsonObject(replacement) === undefined

/** A guardrail that fails has not found nothing: it could not look. */
async function ask<Replacement>(
  { name, timeoutMs }: Guardrail,
  check: () => GuardrailVerdict<Replacement> | Promise<GuardrailVerdict<Replacement>>,
  { clock, report, fits }: Asking,
): Promise<{ readonly find?: GuardrailFind; readonly replacement?: Replacement }> {
  try {
    const verdict = await answerInTime(check, clock, timeoutMs)
    return verdict === late
      ? { find: blockedBy(name, 'it did not answer in time') }
      : read(name, verdict, fits)
  } catch (error) {
    report?.(error, `The guardrail ${name} failed`)
    return { find: blockedBy(name, `it failed: ${textOfError(error)}`) }
  }
}

/** Reads a verdict. A guardrail may be written without a compiler: an invalid verdict counts as a failed check. */
function read<Replacement>(
  guardrail: string,
  verdict: GuardrailVerdict<Replacement>,
  fits: Asking['fits'],
): { readonly find?: GuardrailFind; readonly replacement?: Replacement } {
  if (verdict === 'pass') return {}
  if (typeof verdict !== 'object' || verdict === null)
    return {
      find: blockedBy(guardrail, "it answered no verdict: 'pass', { block }, { replace } or { record }"),
    }
  if ('block' in verdict) return { find: blockedBy(guardrail, detailText(verdict.block)) }
  if ('record' in verdict)
    return { find: { guardrail, action: 'record', detail: detailText(verdict.record) } }
  const { replace, why } = verdict
  if (!fits(replace)) return { find: blockedBy(guardrail, 'what it put in its place does not fit there') }
  return {
    find: { guardrail, action: 'replace', ...(why !== undefined && { detail: detailText(why) }) },
    replacement: replace,
  }
}

function detailText(detail: unknown): string {
  return typeof detail === 'string' ? detail : 'something'
}

function blockedBy(guardrail: string, detail: string): GuardrailFind {
  return { guardrail, action: 'block', detail }
}

function contentOf(replacement: string | readonly ResultPart[]): readonly ResultPart[] {
  return typeof replacement === 'string' ? [{ type: 'text', text: replacement }] : replacement
}

/** Where the guardrails of a run look. */
export function contextOf(state: RunState, context: unknown): GuardrailContext<AnyContext> {
  const { runId, agent, turn, history } = state
  return { runId, agent, turn, messages: messagesOf(history), context }
}
