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

const [deadlineMs, farMs, retryAfterMs, longMs] = [4_000, 3_600_000, 4_000, 30_000]

const words = ['charge', 'order', 'charge', 'pay', 'wait', 'charge'] as const
/** The turn whose first model call is refused with 429. */
const busyTurn = 2

const roundsTask = /^Rounds (\d+)/

/** What a run does for its task, a call a turn: the words above; or it waits so many times until its call is settled. */
export function listCalls(task: string): readonly (typeof words)[number][] {
  const [, rounds] = roundsTask.exec(task) ?? []
  if (rounds === undefined) return words
  return Array.from({ length: Number(rounds) }, (_, round) => (round % 2 === 0 ? 'order' : 'wait'))
}

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
  /** A write of which the file of effects knows whether it was done, should a process have died in it. */
  const makeTool = (
    name: Exclude<Deed['what'], 'refused'>,
    { run, ...more }: Pick<Parameters<typeof testTool>[0], 'run' | 'check'>,
  ) =>
    testTool({
      ...more,
      name,
      effect: 'write',
      recovery: 'reconcile',
      run(call, report) {
        act(name, call.idempotencyKey)
        return run?.(call, report) ?? 'Done.'
      },
      reconcile: ({ idempotencyKey }) =>
        Promise.resolve(
          hasDone(name, idempotencyKey)
            ? { state: 'done', outcome: 'success', content: [{ type: 'text', text: 'It was done.' }] }
            : { state: 'not_done' },
        ),
    })
  const charge = makeTool('charge', {
    async run({ input }) {
      await sleep(input['isLong'] ? longMs : 150)
      return 'Charged.'
    },
  })
  const pay = makeTool('pay', { check: () => ({ kind: 'ask' }) })
  const wait = makeTool('wait', {
    run({ idempotencyKey, input }, report) {
      report.defer(idempotencyKey, input['isLong'] ? farMs : deadlineMs)
      return ''
    },
  })
  const order = makeTool('order', {
    run({ idempotencyKey }, report) {
      report.defer(idempotencyKey)
      return ''
    },
  })
  const model: Model = {
    ...scriptedModel([]),
    stream(request, context) {
      const { task, turn } = readRequest(request)
      let reply: ScriptedReply = { text: 'All done.' }
      const name = listCalls(task)[turn]
      const hasRounds = roundsTask.test(task)
      if (turn === busyTurn && !hasRounds && !hasDone('refused', task)) {
        act('refused', task)
        reply = { fail: 'rate_limited', retryAfterMs }
      } else if (name !== undefined) {
        const isLong = hasRounds || (turn === 0 && task.endsWith('long'))
        reply = { toolCalls: [{ name, input: { turn, ...(isLong && { isLong }) } }] }
      }
      return scriptedModel([reply]).stream(request, context)
    },
  }
  const tools = [charge, pay, wait, order]
  return defineAgent({ name: 'campaign', instructions: 'Work.', model, tools })
}

function readRequest({ messages }: ModelRequest): { readonly task: string; readonly turn: number } {
  const [first] = messages
  const task = first?.role === 'user' ? joinText(first.parts) : ''
  return { task, turn: messages.filter(({ role }) => role === 'assistant').length }
}
