// The agent of the campaign: a write with reconcile, an approval, a deferred call with a deadline, one that is settled, and a 429 with
// retry-after. Its tools and its model know of the past only what the request, and the file of effects, says.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Agent, defineAgent, joinText, type Model, type ModelRequest } from '@tallystick/core'
import { scriptedModel, type ScriptedReply, testTool } from '@tallystick/testkit'

/** Something that really happened. */
export interface Deed {
  readonly what: 'charge' | 'pay' | 'wait' | 'order' | 'refused'
  readonly key: string
  readonly at: number
}

const [deadlineMs, retryAfterMs, longMs] = [4_000, 4_000, 30_000]

const words = ['charge', 'order', 'charge', 'pay', 'wait', 'charge'] as const
/** The turn whose first model call is refused with 429. */
const busyTurn = 2
/** What each run does: so many writes with reconcile. */
export const chargesOfRun: number = words.filter((word) => word === 'charge').length
export const deedsOfRun: number = words.length

export function readDeeds(path: string): readonly Deed[] {
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Deed)
}

/** `onDeed` is told of each effect at once, while its call is still under way. */
export function createCampaignAgent(path: string, onDeed: (what: string) => void = () => {}): Agent {
  const act = (what: Deed['what'], key: string): void => {
    appendFileSync(path, `${JSON.stringify({ what, key, at: Date.now() } satisfies Deed)}\n`)
    onDeed(what)
  }
  const hasDone = (what: Deed['what'], key: string): boolean =>
    readDeeds(path).some((deed) => deed.what === what && deed.key === key)
  const charge = testTool({
    name: 'charge',
    effect: 'write',
    recovery: 'reconcile',
    async run({ idempotencyKey, input }) {
      act('charge', idempotencyKey)
      await sleep(input['isLong'] ? longMs : 150)
      return 'Charged.'
    },
    reconcile: ({ idempotencyKey }) =>
      Promise.resolve(
        hasDone('charge', idempotencyKey)
          ? { state: 'done', outcome: 'success', content: [{ type: 'text', text: 'It was charged.' }] }
          : { state: 'not_done' },
      ),
  })
  const pay = testTool({
    name: 'pay',
    effect: 'write',
    check: () => ({ kind: 'ask' }),
    run({ idempotencyKey }) {
      act('pay', idempotencyKey)
      return 'Paid.'
    },
  })
  const deferring = (name: 'wait' | 'order', deadline?: number) =>
    testTool({
      name,
      effect: 'write',
      run({ idempotencyKey }, report) {
        act(name, idempotencyKey)
        report.defer(idempotencyKey, deadline)
        return ''
      },
    })
  const model: Model = {
    ...scriptedModel([]),
    stream(request, context) {
      const { task, turn } = readRequest(request)
      let reply: ScriptedReply = { text: 'All done.' }
      const name = words[turn]
      if (turn === busyTurn && !hasDone('refused', task)) {
        act('refused', task)
        reply = { fail: 'rate_limited', retryAfterMs }
      } else if (name !== undefined) {
        const isLong = turn === 0 && task.endsWith('long')
        reply = { toolCalls: [{ name, input: { turn, ...(isLong && { isLong }) } }] }
      }
      return scriptedModel([reply]).stream(request, context)
    },
  }
  const tools = [charge, pay, deferring('wait', deadlineMs), deferring('order')]
  return defineAgent({ name: 'campaign', instructions: 'Work.', model, tools })
}

function readRequest({ messages }: ModelRequest): { readonly task: string; readonly turn: number } {
  const [first] = messages
  const task = first?.role === 'user' ? joinText(first.parts) : ''
  return { task, turn: messages.filter(({ role }) => role === 'assistant').length }
}
