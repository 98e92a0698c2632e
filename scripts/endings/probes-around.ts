// What guardrails and child runs lead to, found out by letting them.
import { agentTool, defineAgent, handBack, type AgentOptions, type Guardrail } from '@tallystick/core'
import {
  type FinishReason,
  type GuardedThing,
  type GuardrailAction,
  type Outcome,
} from '@tallystick/core/vocabulary'
import { scriptedModel, testTool, type ScriptedReply, type ScriptedStep } from '@tallystick/core/testing'
import { play } from './play.ts'

const look = { name: 'look', input: {} }
const looking: ScriptedReply = { toolCalls: [look] }
const done: ScriptedReply = { text: 'Done.' }

/** A guardrail that finds something in all that it looks at. */
function finder(on: GuardedThing, action: GuardrailAction): Guardrail {
  const name = 'probe'
  if (action !== 'replace')
    return { name, on, check: () => ({ [action]: 'found' }) as { readonly block: string } }
  if (on === 'tool_input') return { name, on, check: () => ({ replace: { other: true } }) }
  return { name, on, check: () => ({ replace: 'Other.' }) }
}

/** What follows from what a guardrail finds. */
export async function afterFind(on: GuardedThing, action: GuardrailAction): Promise<string> {
  const { result, events } = await play([looking, done], { guardrails: [finder(on, action)] })
  const found = events.find((event) => event.type === 'guardrail_tripped')
  if (found?.action !== action)
    throw new Error(`A guardrail on ${on} that answers ${action} did not: it is not probed.`)
  if (result.reason !== 'answered' || on === 'output') return `\`${result.reason}\``
  const called = events.find((event) => event.type === 'tool_result')
  return called?.outcome === 'success' ? 'the run continues' : `\`${called?.outcome}\`, the run continues`
}

interface ChildProbe {
  readonly what: string
  readonly steps: readonly ScriptedStep[]
  readonly options?: Partial<AgentOptions>
}

const never: ScriptedReply = { toolCalls: [{ name: 'transfer_to_desk', input: {} }] }

const childProbes: readonly ChildProbe[] = [
  { what: 'answered', steps: [done] },
  {
    what: 'met a limit, and wrote down what it had',
    steps: [looking, done],
    options: { limits: { maxTurns: 2 } },
  },
  {
    what: 'met a limit, and had written nothing',
    steps: [looking],
    options: { limits: { maxTurns: 1, onLimit: 'stop' } },
  },
  { what: 'could not reach its model', steps: [{ fail: 'authentication' }] },
  { what: 'was refused by its model', steps: [{ text: 'No.', stopReason: 'refused' }] },
  { what: 'was cut short', steps: [{ text: 'So', stopReason: 'max_tokens' }] },
  { what: 'was blocked', steps: [done], options: { guardrails: [finder('output', 'block')] } },
  {
    what: 'did not answer by its schema',
    steps: [done],
    options: { output: { type: 'object' }, maxOutputRepairs: 0 },
  },
  {
    what: 'handed the conversation back',
    steps: [never],
    options: { handoffs: [handBack('desk', { description: 'Use it always.' })] },
  },
]

/** What becomes of a call whose child run ends in each of these ways. */
export async function afterChild(): Promise<
  readonly { readonly what: string; readonly reason: FinishReason; readonly outcome: Outcome }[]
> {
  return await Promise.all(
    childProbes.map(async ({ what, steps, options }) => {
      const child = defineAgent({
        name: 'child',
        description: 'Works.',
        instructions: '',
        model: scriptedModel(steps),
        tools: [testTool({ name: 'look', run: () => 'seen' })],
        ...(options as Partial<AgentOptions<unknown>>),
      })
      const call: ScriptedReply = { toolCalls: [{ name: 'child', input: { task: 'Go.' } }] }
      const { events, eventsOf } = await play([call, done], { tools: [agentTool(child)] })
      const settled = events.find((event) => event.type === 'tool_result')
      const ended = settled?.child && (await eventsOf(settled.child.runId)).at(-1)
      if (!settled || ended?.type !== 'run_finished')
        throw new Error(`The child run that ${what} did not end.`)
      return { what, reason: ended.reason, outcome: settled.outcome }
    }),
  )
}
