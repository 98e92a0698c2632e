import { describe, expect, it, onTestFinished } from 'vitest'
import { memoryLedger, type Ledger, type Run } from '@tallystick/core'
import { testTool } from '@tallystick/testkit'
import { stage, type Stage } from './stage.ts'

/** The rejections of this process that nobody handles, from now on. */
function unhandled(): unknown[] {
  const errors: unknown[] = []
  const onRejection = (error: unknown): void => void errors.push(error)
  process.on('unhandledRejection', onRejection)
  onTestFinished(() => void process.off('unhandledRejection', onRejection))
  return errors
}

/** A run that waits for a person, in a ledger that can be broken. */
async function waitingRun() {
  const whole = memoryLedger()
  let broken: 'append' | 'put' | undefined
  const failing =
    <K extends 'append' | 'put'>(verb: K): Ledger[K] =>
    async (...given: readonly unknown[]) => {
      if (broken === verb) throw new Error(`The disk is gone (${verb}).`)
      return await (whole[verb] as (...args: readonly unknown[]) => Promise<never>)(...given)
    }
  const ledger: Ledger = { ...whole, append: failing('append'), put: failing('put') }
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]
  const set = stage({ steps, tools: [pay], ledger })
  const run = set.start()
  const { pendingApprovals } = await set.waitUntilSettled(run.result)
  return {
    ...{ set, run, call: pendingApprovals[0]!.toolCallId },
    breakAt: (verb: 'append' | 'put') => (broken = verb),
  }
}

const { agent: other } = stage({ name: 'other' })

type Ask = (run: Run, call: string, set: Stage) => Promise<unknown>

const commands: readonly (readonly [string, Ask])[] = [
  ['steer', (run) => run.steer('Faster.')],
  ['queue', (run) => run.queue('And then?')],
  ['approve', (run, call) => run.approve(call, { by: 'ada' })],
  ['deny', (run, call) => run.deny(call, { by: 'ada', reason: 'No.' })],
  ['cancel', (run) => run.cancel('Enough.')],
  ['raiseLimit', (run) => run.raiseLimit('maxTurns', 99, { by: 'ada' })],
  ['settle', (run, call, { runtime }) => runtime.settle(run.id, call, 'Paid.')],
  ['send', (run, _, { runtime }) => runtime.send(run.id, { type: 'cancel' })],
]

const waits: readonly (readonly [string, Ask])[] = [
  ['result', (run) => run.result],
  ['resume', (run, _, { runtime }) => runtime.resume(run.id).result],
  [
    'resume as a run of another agent',
    (run, _, { runtime }) => runtime.resume(run.id, { agent: other }).result,
  ],
  ['drain', (_run, _call, { runtime }) => runtime.drain(0)],
]

const mine = { sessionId: 'mine' }
const refusedStarts: readonly (readonly [string, (set: Stage) => Promise<unknown>])[] = [
  [
    'a session refuses to let an input join',
    ({ runtime, agent }) => {
      const mayFollow = (): never => {
        throw new Error('It is not yours.')
      }
      return runtime.session('mine').run(agent, 'Me, too.', { whenBusy: 'join', mayFollow })
    },
  ],
  [
    'more than one message is to join',
    ({ runtime, agent }) => {
      const said = ['One.', 'Two.'].map((content) => ({ role: 'user' as const, content }))
      return runtime.session('mine').run(agent, said, { whenBusy: 'join' })
    },
  ],
  [
    'an option is unknown',
    ({ runtime, agent }) => runtime.session('mine').run(agent, 'Go.', { whenBusy: 'later' } as never),
  ],
  ['a drain is given no number', ({ runtime }) => runtime.drain(-1)],
  [
    'the ledger is closed',
    ({ runtime, agent, ledger }) => {
      void ledger.close()
      void runtime.session('mine').history()
      return runtime.session('mine').run(agent, 'Go.', { whenBusy: 'join' })
    },
  ],
]

/** Lets everything end that may reject, and Node look for rejections without a handler. */
async function settled({ runtime, waitUntilSettled }: Stage): Promise<void> {
  await waitUntilSettled(runtime.idle())
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
}

describe('given a caller who does not wait for the answer', () => {
  it.each(commands)(
    'when %s fails with the driver, then the host hears of it and the process lives',
    async (_, ask) => {
      const errors = unhandled()
      const { set, run, call, breakAt } = await waitingRun()
      breakAt('append')
      void ask(run, call, set)
      await settled(set)
      expect(errors).toEqual([])
      expect(set.reported.map(String)).toEqual(['Error: The disk is gone (append).'])
    },
  )

  it.each(commands)(
    'when %s cannot be delivered, then the host hears of it and the process lives',
    async (_, ask) => {
      const errors = unhandled()
      const { set, run, call, breakAt } = await waitingRun()
      breakAt('put')
      void ask(run, call, set)
      await settled(set)
      expect(errors).toEqual([])
      expect(set.reported.map(String)).toContain('Error: The disk is gone (put).')
    },
  )

  it.each([...commands, ...waits])(
    'when the ledger closes beside %s, then the process lives',
    async (_, ask) => {
      const errors = unhandled()
      const { set, run, call } = await waitingRun()
      void ask(run, call, set)
      void set.ledger.close()
      await settled(set)
      void ask(run, call, set)
      await settled(set)
      expect(errors).toEqual([])
    },
  )

  it.each(refusedStarts)('when %s, then the host hears of it and the process lives', async (_, ask) => {
    const errors = unhandled()
    const set = stage({ steps: [{ text: 'One.' }] })
    await set.waitUntilSettled(set.runtime.run(set.agent, 'Mine.', mine).result)
    void ask(set)
    await settled(set)
    expect(errors).toEqual([])
    expect(set.reported).not.toEqual([])
  })

  it.each(waits)('when the driver fails beside %s, then the process lives', async (_, ask) => {
    const errors = unhandled()
    const { set, run, call, breakAt } = await waitingRun()
    breakAt('append')
    run.approve(call, { by: 'ada' }).catch(() => {})
    void ask(run, call, set)
    await settled(set)
    expect(errors).toEqual([])
  })
})

describe('given a caller who waits for the answer', () => {
  it.each(commands)('when %s fails with the driver, then the caller alone hears of it', async (_, ask) => {
    const { set, run, call, breakAt } = await waitingRun()
    breakAt('append')
    await expect(set.waitUntilSettled(ask(run, call, set))).rejects.toThrow('The disk is gone')
    await settled(set)
    expect(set.reported).toEqual([])
  })
})
