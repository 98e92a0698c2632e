import { summaryRequest } from '../../machine/compaction.ts'
import type { Effect } from '../../machine/required-effects.ts'
import type { Clock, Host } from '../../values/host.ts'
import { answersIn } from '../../events/answer-schema.ts'
import { sameModel, textOf } from '../../events/content.ts'
import { omitUndefined } from '../../values/json.ts'
import type { Signal } from '../../events/signals.ts'
import { largerUsage, tokenCounts, type Usage } from '../../events/usage.ts'
import type { Agent } from '../agent/agent.ts'
import { textOfError } from '../../values/text.ts'
import { answerInTime, CHECK_MS, late } from '../checks/answer-in-time.ts'
import { findsInInput, findsInOutput, findsInResults, guardrailsFor } from '../checks/guardrail-check.ts'
import { startModelCall } from './model-effect.ts'
import { jsonOfAnswer } from '../schema/output-schema.ts'

type EffectOf<K extends Effect['kind']> = Extract<Effect, { readonly kind: K }>
type Post = (signal: Signal) => void
type CheckedReply = EffectOf<'check_output'>['state']

/** A check that is due, and whose it is. */
export interface DueCheck<K extends Effect['kind']> {
  readonly effect: EffectOf<K>
  readonly agent: Agent<unknown>
  readonly clock: Clock
  /** What the application gave this run. */
  readonly context: unknown
}

/** Lets guardrails look, and posts one `guardrails_checked`. */
export async function checkGuardrails(
  { effect, agent, clock, context }: DueCheck<'guardrails'>,
  post: Post,
): Promise<void> {
  const { on, guardrails } = effect
  const signal = { type: 'guardrails_checked', on, guardrails } as const
  switch (effect.on) {
    case 'input': {
      const looking = guardrailsFor(agent.guardrails, 'input', guardrails)
      const finds = await findsInInput(looking, effect, { clock, context })
      return post({ ...signal, place: effect.inputCheck.seq, finds })
    }
    case 'output': {
      const looking = guardrailsFor(agent.guardrails, 'output', guardrails)
      const finds = await findsInOutput(looking, effect.state, { clock, context })
      return post({ ...signal, place: effect.state.turn, finds })
    }
    case 'tool_output': {
      const looking = guardrailsFor(agent.guardrails, 'tool_output', guardrails)
      const finds = await findsInResults(looking, effect.state, { clock, context })
      return post({ ...signal, place: effect.state.turn, finds })
    }
  }
}

type AnswerChecked = Extract<Signal, { readonly type: 'output_checked' }>

/** Reads the answer by the agent's schema, and posts one `output_checked`. */
export async function checkAnswer(
  { effect: { state }, ...checking }: Omit<DueCheck<'check_output'>, 'context'>,
  post: Post,
): Promise<void> {
  post({ type: 'output_checked', turn: state.turn, verdict: await answerVerdict(state, checking) })
}

/** Whether the answer of a reply fits the agent's schema: the answer, or what does not fit. */
export async function answerVerdict(
  state: CheckedReply,
  { agent, clock }: Pick<DueCheck<'check_output'>, 'agent' | 'clock'>,
): Promise<AnswerChecked['verdict']> {
  const refused = (error: string): AnswerChecked['verdict'] => ({ valid: false, error })
  const written = jsonOfAnswer(textOf(state.reply.message.parts))
  if (written === undefined) return refused('it is no JSON')
  const asked = state.definition.output
  try {
    const errors: string[] = []
    for (const output of asked ? answersIn(asked, written) : [written]) {
      const read = await answerInTime(() => agent.output?.read(output), clock)
      if (read === late) return refused(`the check of the schema did not end within ${CHECK_MS} ms`)
      if (read === undefined || !('error' in read)) return { valid: true, output }
      errors.push(read.error)
    }
    return refused(`${asked?.wrapped ? 'in the field answer: ' : ''}${errors[0]}`)
  } catch (error) {
    return refused(`the check of the schema failed: ${textOfError(error)}`)
  }
}

/** Asks the model that sums up, and posts one `summarized`. Answers how to give the call up. */
export function summarize(
  {
    effect: { compacting, state },
    agent,
    host,
  }: Omit<DueCheck<'summarize'>, 'clock' | 'context'> & { readonly host: Host },
  post: Post,
): () => void {
  const { turn } = state
  let usage: Usage | undefined
  const say = (answer: Extract<Signal, { type: 'summarized' }>['answer']): void =>
    post({ type: 'summarized', turn, answer, ...omitUndefined({ usage }) })
  const model = agent.summarizer
  if (model === undefined || !sameModel(model, compacting.model)) {
    const message = `The agent ${agent.name} has no model ${compacting.model.modelId} any more that sums up.`
    say({ failure: { class: 'not_found', message, retryable: false } })
    return () => {}
  }
  const request = summaryRequest(state, compacting)
  const call = { model, request, turn, attempt: 1, timeouts: agent.timeouts }
  const attempt = startModelCall(call, host, (signal) => {
    if (signal.type === 'model_usage') usage = largerUsage(usage ?? {}, tokenCounts(signal.usage))
    else if (signal.type === 'model_failed') say({ failure: signal.failure })
    else if (signal.type === 'model_finished') say({ text: textOf(signal.parts) })
  })
  return () => attempt.stop()
}
