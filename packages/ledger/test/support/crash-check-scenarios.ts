import { defineAgent, joinText, type Guardrail, type Message, type ModelRequest } from '@tallystick/core'
import { callsTools, look, saying, undeclared } from './crash-agents.ts'
import { byTurn, stagedModel, type Stage } from './crash-effects.ts'
import { asking, type Scenario } from './crash-user.ts'

const retry: Scenario = {
  name: 'retry',
  agent: (stage) =>
    defineAgent({
      name: 'insister',
      instructions: 'Insist.',
      tools: [undeclared(stage, 'pay')],
      retry: { baseMs: 1, capMs: 2 },
      model: stagedModel(stage, (request) => {
        const reply = byTurn([{ text: 'One moment.', ...callsTools('pay') }, saying('Paid at last.')])(
          request,
        )
        if (stage.world.count('told', 'overloaded') > 0) return reply
        stage.world.note({ what: 'told', name: 'overloaded' })
        return { text: 'One mo', fail: 'overloaded' }
      }),
    }),
  steps: [asking('Pay.')],
  ends: { '': [{ reason: 'answered', text: /^Paid at last\.$/ }] },
}

/** Looks at everything, and changes what tools answer. */
function guardrails({ cross }: Stage): readonly Guardrail[] {
  const looked = async <T>(on: string, verdict: T): Promise<T> => {
    cross(`guardrail: before it looks at ${on}`)
    await Promise.resolve()
    cross(`guardrail: has looked at ${on}`)
    return verdict
  }
  return [
    { name: 'of what is asked', on: 'input', check: () => looked('input', { record: 'seen' }) },
    { name: 'of calls', on: 'tool_input', check: () => looked('calls', 'pass' as const) },
    {
      name: 'of results',
      on: 'tool_output' as const,
      check: () => looked('results', { replace: 'What the tool said is a secret.', why: 'secrecy' }),
    },
    { name: 'of answers', on: 'output', check: () => looked('answers', 'pass' as const) },
  ]
}

const guarded: Scenario = {
  name: 'guarded',
  agent: (stage) =>
    defineAgent({
      name: 'guarded',
      instructions: 'Answer in JSON.',
      guardrails: guardrails(stage),
      output: {
        type: 'object',
        required: ['paid'],
        additionalProperties: false,
        properties: { paid: { type: 'boolean' } },
      },
      tools: [look(stage), undeclared(stage, 'pay')],
      model: stagedModel(
        stage,
        byTurn([callsTools('look', 'pay'), saying('It is paid.'), saying('{"paid":true}')]),
      ),
    }),
  steps: [asking('Pay, and say in JSON whether it worked.')],
  ends: { '': [{ reason: 'answered', text: /^\{"paid":true\}$/ }] },
}

const summedUp: Scenario = {
  name: 'summed up',
  agent: (stage) =>
    defineAgent({
      name: 'rambler',
      instructions: 'Look again and again.',
      tools: [look(stage)],
      compaction: {
        maxContextTokens: 90,
        keepMessages: 2,
        summarize: stagedModel(
          stage,
          ({ messages: [first] }) => saying(`${repliesBefore(first)} replies before.`),
          'scripted-2',
        ),
      },
      model: stagedModel(stage, (request) =>
        repliesIn(request) < 4 ? callsTools('look', 'look') : saying('I have seen it all.'),
      ),
    }),
  steps: [asking('Look until you have seen it all.')],
  ends: { '': [{ reason: 'answered', text: /^I have seen it all\.$/ }] },
}

function summarized(message: Message | undefined): number {
  return Number(
    /(\d+) replies before/.exec(message?.role === 'user' ? joinText(message.parts) : '')?.[1] ?? 0,
  )
}

/** How many replies a request holds, those in its summary included: the place in the script. */
function repliesIn({ messages }: ModelRequest): number {
  return summarized(messages[0]) + messages.filter(({ role }) => role === 'assistant').length
}

/** The same, of the history that is to be summed up. */
function repliesBefore(first: Message | undefined): number {
  const text = first?.role === 'user' ? joinText(first.parts) : ''
  return summarized(first) + text.split('\nAssistant').length - 1
}

/** Runs in which models fail, guardrails and schemas look, and a model sums up. */
export const checkScenarios: readonly Scenario[] = [retry, guarded, summedUp]
