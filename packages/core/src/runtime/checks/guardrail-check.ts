import { messagesOf } from '../../machine/history.ts'
import { answeredCalls } from '../../machine/required-effects.ts'
import type { CollectingState, ExecutingState, InputCheck, RunState } from '../../machine/state.ts'
import type { Clock } from '../../values/host.ts'
import type { AnyContext } from '../../events/agent-definition.ts'
import { type ResultPart, resultPart, textOf } from '../../events/content.ts'
import { isJson, type JsonObject, omitUndefined } from '../../values/json.ts'
import { faultOf, jsonObject, listOf } from '../../values/schema.ts'
import type { GuardrailFind } from '../../events/signals.ts'
import { textOfError } from '../../values/text.ts'
import { answerInTime, late } from './answer-in-time.ts'
import type {
  GuardedCall,
  Guardrail,
  GuardrailContext,
  GuardrailVerdict,
  InputGuardrail,
  OutputGuardrail,
  ToolInputGuardrail,
  ToolOutputGuardrail,
} from '../agent/guardrail.ts'

/** What guardrails of a run look with. */
export interface Looking {
  readonly clock: Clock
  readonly context: unknown
}

/** Runs the guardrails of the user's messages since the last reply; each checks the result of the one before it. */
export async function findsInInput(
  guardrails: readonly InputGuardrail[],
  { state, inputCheck }: { readonly state: RunState; readonly inputCheck: InputCheck },
  { clock, context: own }: Looking,
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
  { clock, context }: Looking,
): Promise<readonly GuardrailFind[]> {
  const finds: GuardrailFind[] = []
  let text = textOf(state.reply.message.parts)
  for (const guardrail of guardrails) {
    const { find, replacement } = await ask(
      guardrail,
      () => guardrail.check({ text }, contextOf(state, context)),
      {
        clock,
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
  { clock, context }: Looking,
): Promise<readonly GuardrailFind[]> {
  const finds = await Promise.all(
    answeredCalls(state).map(async ({ toolCallId, name, input, result }) => {
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

/** What guardrails found in one call, and the input that they left of it. */
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
): Promise<GuardedCheck> {
  const finds: GuardrailFind[] = []
  let input: JsonObject | undefined
  for (const guardrail of guardrails) {
    const subject = { ...call, input: input ?? call.input }
    const { find, replacement } = await ask(guardrail, () => guardrail.check(subject, context), {
      clock,
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
  readonly fits: (replacement: unknown) => boolean
}

const parts = listOf(resultPart)
const isText = (replacement: unknown): boolean => typeof replacement === 'string'
const isContent = (replacement: unknown): boolean =>
  isText(replacement) || (isJson(replacement) && faultOf(parts, replacement) === undefined)
const isObject = (replacement: unknown): boolean => faultOf(jsonObject, replacement) === undefined

/** A guardrail that fails has not found nothing: it could not look. */
async function ask<Replacement>(
  { name, timeoutMs }: Guardrail,
  check: () => GuardrailVerdict<Replacement> | Promise<GuardrailVerdict<Replacement>>,
  { clock, fits }: Asking,
): Promise<{ readonly find?: GuardrailFind; readonly replacement?: Replacement }> {
  try {
    const verdict = await answerInTime(check, clock, timeoutMs)
    return verdict === late
      ? { find: blockedBy(name, 'it did not answer in time') }
      : read(name, verdict, fits)
  } catch (error) {
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
