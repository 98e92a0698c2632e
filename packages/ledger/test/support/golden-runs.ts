import {
  agentTool,
  createRuntime,
  defineAgent,
  handoff,
  type Agent,
  type AgentOptions,
  type Ledger,
  type OnInput,
  type RunResult,
  type Runtime,
} from '@tallystick/core'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  SimulatedCrash,
  testTool,
  type ScriptedStep,
} from '@tallystick/testkit'
import { watchedLedger, type WatchedLedger } from '@tallystick/testkit'

const usage = { inputTokens: 120, outputTokens: 17, cacheReadTokens: 100, reasoningTokens: 4 }
const prices = { 'scripted-1': { inputUsd: 3, outputUsd: 15, cacheReadUsd: 0.3, source: 'golden' } }

/** More runtimes than record golden runs: the chance of each is another part of 1. */
const maxRuntimes = 128

/** What every golden run shares: a ledger, a clock that a run moves, and chance that is the same at every time. */
class GoldenStage {
  readonly ledger: Ledger
  readonly clock: ReturnType<typeof manualClock> = manualClock(Date.UTC(2026, 10, 20))
  #runtimes = 0
  readonly #outside: WatchedLedger['outside']

  constructor(given: Ledger) {
    const { ledger, outside } = watchedLedger(given)
    this.ledger = ledger
    this.#outside = outside
  }

  runtime(agents: readonly Agent<unknown>[], ledger: Ledger = this.ledger): Runtime {
    // However often a runtime draws, it draws the same: ids stay what they were where code asks chance more often.
    const chance = (this.#runtimes++ + 0.5) / maxRuntimes
    const host = { clock: this.clock, random: () => chance, report: () => {} }
    return createRuntime({ ledger, agents, prices, host })
  }

  settled<T>(promise: Promise<T>): Promise<T> {
    return waitUntilSettled(this.clock, promise, this.#outside)
  }

  /** Drives a run of an agent to its rest. */
  async rest(agent: Agent<unknown>, input: string): Promise<RunResult> {
    return await this.settled(this.runtime([agent]).run(agent, input).result)
  }
}

function agentOf(
  name: string,
  steps: readonly ScriptedStep[],
  options: Partial<AgentOptions<unknown>> = {},
): Agent<unknown> {
  return defineAgent<unknown>({
    name,
    instructions: `You are ${name}.`,
    model: scriptedModel(steps),
    ...options,
  })
}

const look = testTool({
  name: 'look',
  run: ({ input }, report) => {
    report.progress({ done: 0.5 })
    return `Looked at ${JSON.stringify(input)}.`
  },
})
const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask', reason: 'it is money' }) })
const flaky = testTool({
  name: 'flaky',
  retry: { maxAttempts: 2, baseMs: 100, capMs: 1_000, maxRetryAfterMs: 0 },
  run: ({ input, attempt }) => {
    if (attempt === 1 || input['at'] === 'b') throw new Error('503')
    return 'Found.'
  },
})
const callsTools = (
  name: string,
  ...inputs: readonly { readonly [key: string]: string | number }[]
): ScriptedStep => ({
  reasoning: 'Let me see.',
  text: 'I use a tool. ',
  toolCalls: inputs.map((input) => ({ name, input })),
  usage,
})
const said = (text: string): ScriptedStep => ({ text, usage })

/** One run, or a few, for each thing that a ledger can tell of. */
const scenes: readonly ((stage: GoldenStage) => Promise<unknown>)[] = [
  (stage) =>
    stage.rest(
      agentOf('tools', [callsTools('look', { at: 'a' }, { at: 'ü\ud800\n' }), said('Seen.')], {
        tools: [look],
      }),
      'Look.',
    ),
  (stage) =>
    stage.rest(
      agentOf(
        'garbles',
        [{ text: 'I use a tool. ', toolCalls: [{ name: 'look', input: '{"at": ' }], usage }, said('Sorry.')],
        { tools: [look] },
      ),
      'Look.',
    ),
  async (stage) => {
    const agent = agentOf('approvals', [callsTools('pay', { usd: 1 }, { usd: 2 }), said('Paid.')], {
      tools: [pay],
    })
    const runtime = stage.runtime([agent])
    const run = runtime.run(agent, 'Pay.')
    const [one, two] = (await stage.settled(run.result)).pendingApprovals
    await stage.settled(run.approve(one?.toolCallId ?? '', { by: 'ada', input: { usd: 3 } }))
    await stage.settled(run.deny(two?.toolCallId ?? '', { by: 'ada', reason: 'once is enough' }))
    await stage.settled(run.result)
  },
  crashed,
  (stage) =>
    stage.rest(agentOf('retries', [{ text: 'I beg', fail: 'overloaded' }, said('Again.')]), 'Try hard.'),
  async (stage) => {
    const limits = { maxTurns: 1, onLimit: 'ask' } as const
    const agent = agentOf('limits', [callsTools('look', { at: 'a' }), said('More.')], {
      tools: [look],
      limits,
    })
    const run = stage.runtime([agent]).run(agent, 'Go far.')
    await stage.settled(run.result)
    await stage.settled(run.raiseLimit('maxTurns', 5, { by: 'ada' }))
    await stage.settled(run.result)
  },
  (stage) =>
    stage.rest(
      agentOf('finalizes', [callsTools('look', { at: 'a' }), said('In short.')], {
        tools: [look],
        limits: { maxTurns: 1 },
      }),
      'Be long.',
    ),
  async (stage) => {
    const agent = agentOf('cancels', [{ text: 'Once upon a time', hang: true }])
    const run = stage.runtime([agent]).run(agent, 'Tell me everything.')
    for await (const event of run) if (event.type === 'assistant_text_delta') void run.cancel('too long')
    await stage.settled(run.result)
  },
  async (stage) => {
    const job = testTool({
      name: 'job',
      effect: 'write',
      run: (_run, report) => {
        report.defer('job-7')
        return ''
      },
    })
    const agent = agentOf('defers', [callsTools('job', { of: 'hours' }), said('Done.')], { tools: [job] })
    const runtime = stage.runtime([agent])
    const run = runtime.run(agent, 'Start it.')
    const [call] = (await stage.settled(run.result)).deferredCalls
    await stage.settled(runtime.settle(run.id, call?.toolCallId ?? '', 'it took hours'))
    await stage.settled(runtime.resume(run.id).result)
  },
  async (stage) => {
    const agent = agentOf('sessions', [said('Hello.'), said('Still here.')])
    const runtime = stage.runtime([agent])
    const first = runtime.run(agent, 'My key is 123.', { sessionId: 'chat' })
    await stage.settled(first.result)
    const message = { role: 'user', parts: [{ type: 'text', text: 'My key is secret.' }] } as const
    const edit = { of: first.id, edits: [{ index: 0, message }], by: 'ada', reason: 'a key was in it' }
    await stage.settled(runtime.run(agent, 'And now?', { sessionId: 'chat', edit }).result)
  },
  async (stage) => {
    const agent = agentOf('steers', [callsTools('look', { at: 'a' }), said('Brief.'), said('More.')], {
      tools: [look],
    })
    const run = stage.runtime([agent]).run(agent, 'Look.')
    run.events$.subscribe((event) => {
      if (event.type !== 'tool_started') return
      void run.steer('Be brief.')
      void run.queue('And then?')
    })
    await stage.settled(run.result)
  },
  (stage) => {
    const summarize = scriptedModel([said('They looked at things.')])
    const compaction = { maxContextTokens: 40, keepMessages: 2, summarize }
    const steps = [callsTools('look', { at: 'a' }), callsTools('look', { at: 'b' }), said('All seen.')]
    return stage.rest(
      agentOf('compacts', steps, { tools: [look], compaction }),
      'Look at everything there is.',
    )
  },
  (stage) => {
    const booking = agentOf('booking', [said('Booked.')], { description: 'Books seats.' })
    const agent = agentOf('hands_over', [callsTools('transfer_to_booking', {})], {
      handoffs: [handoff(booking, { filter: (messages) => messages.slice(0, 1) })],
    })
    return stage.rest(agent, 'Seat 4, please.')
  },
  (stage) =>
    stage.rest(
      agentOf('guards', [callsTools('look', { at: 'a' }), said('The key is 123.')], {
        tools: [look],
        guardrails: [
          { name: 'polite', on: 'input', check: () => ({ replace: 'Look, please.', why: 'manners' }) },
          { name: 'places', on: 'tool_input', check: () => ({ record: 'a place' }) },
          { name: 'results', on: 'tool_output', check: () => ({ replace: 'Looked.' }) },
          { name: 'keys', on: 'output', check: () => ({ block: 'a key' }) },
        ],
      }),
      'Look.',
    ),
  (stage) =>
    stage.rest(
      agentOf('fits', [said('no JSON'), said('{"warm":true}')], {
        output: { type: 'object', properties: { warm: { type: 'boolean' } }, required: ['warm'] },
      }),
      'Is it warm?',
    ),
  (stage) => {
    const child = agentOf('child', [said('It is 21 °C.')], { description: 'Knows the weather.' })
    const agent = agentOf('parent', [callsTools('child', { task: 'How warm?' }), said('Warm.')], {
      tools: [agentTool(child)],
    })
    return stage.rest(agent, 'Ask.')
  },
  async (stage) => {
    const agent = agentOf('waits', [callsTools('pay', { usd: 1 })], { tools: [pay] })
    await stage.rest(agent, 'This run still waits for an approval.')
  },
  async (stage) => {
    const steps = [callsTools('look', { at: 'a' }), said('Seen.'), said('Seen otherwise.')]
    const agent = agentOf('forks', steps, { tools: [look] })
    const runtime = stage.runtime([agent])
    const run = runtime.run(agent, 'Look.')
    await stage.settled(run.result)
    const events = await Array.fromAsync(stage.ledger.read(run.id))
    const atSeq = events.find(({ type }) => type === 'tool_results_injected')?.seq ?? 0
    const message = { role: 'user', parts: [{ type: 'text', text: 'Look again.' }] } as const
    const edit = { history: [{ index: 0, message }], by: 'ada', reason: 'in other words' }
    await stage.settled(runtime.fork(run.id, { atSeq, edit }).result)
  },
  (stage) =>
    stage.rest(
      agentOf('triesAgain', [callsTools('flaky', { at: 'a' }, { at: 'b' }), said('Found.')], {
        tools: [flaky],
      }),
      'Try until it is found.',
    ),
  async (stage) => {
    const agent = agentOf('judged', [said('Four.')])
    const run = stage.runtime([agent]).run(agent, 'Two and two?')
    await stage.settled(run.result)
    stage.clock.advance(3_600_000)
    await stage.settled(run.feedback({ by: 'ada', score: 1, note: 'Right.' }))
    await stage.settled(run.feedback({ by: 'bob', score: 0.5 }))
  },
  async (stage) => {
    const agent = agentOf('remembers', [said('At nine.'), said('Nobody knows.')])
    const runtime = stage.runtime([agent])
    const session = runtime.session('golden edits')
    const by = { by: 'ada', reason: 'by phone' }
    await stage.settled(session.append({ role: 'user', content: 'The dentist is at nine.' }, by))
    await stage.settled(runtime.run(agent, 'When?', { sessionId: session.id }).result)
    await stage.settled(session.pop())
    const branch = await stage.settled(session.branch('golden branch'))
    await stage.settled(branch.clear(by))
    const onInput: OnInput = (history, input) => [...history.slice(-1), input]
    await stage.settled(runtime.run(agent, 'And now?', { sessionId: session.id, onInput }).result)
  },
  async (stage) => {
    const agent = agentOf('scheduled', [said('Good morning.')])
    const runtime = stage.runtime([agent])
    const at = stage.clock.now() + 60_000
    const { scheduleId } = await stage.settled(
      runtime.schedule(agent, { name: 'morning', at, input: 'Greet.' }),
    )
    const set = (paused: boolean) =>
      runtime.send(scheduleId, { type: 'set_schedule', paused, by: 'ada', reason: 'a test' })
    await stage.settled(set(true))
    await stage.settled(set(false))
    await stage.settled(runtime.resume(scheduleId).result)
    await stage.settled(runtime.idle())
  },
  async (stage) => {
    const approvers = [{ count: 2, roles: ['finance'] }]
    const book = testTool({ name: 'book', effect: 'write', check: () => ({ kind: 'ask', approvers }) })
    const steps = [
      ...[callsTools('book', { usd: 1 }), callsTools('pay', { usd: 2 }), callsTools('pay', { usd: 2 })],
      ...[callsTools('book', { usd: 3 }), said('Booked.')],
    ]
    const agent = agentOf('approvers', steps, { tools: [book, pay] })
    const run = stage.runtime([agent]).run(agent, 'Book.', { owner: 'olga' })
    const approve = async (by: string, more: object = {}): Promise<string> => {
      const [asked] = (await stage.settled(run.result)).pendingApprovals
      await stage.settled(run.approve(asked?.toolCallId ?? '', { by, ...more }))
      return asked?.toolCallId ?? ''
    }
    await approve('ada', { roles: ['finance'] })
    await approve('bob', { roles: ['finance', 'sales'], reason: 'it is due' })
    const standing = { for: 'equal_input', expiresInMs: 60_000 }
    const paid = await approve('cem', { standing })
    await stage.settled(run.result)
    await stage.settled(run.withdraw(paid, { by: 'dan', reason: 'twice is enough' }))
    await approve('ada', { roles: ['finance'] })
    await approve('bob', { roles: ['finance'] })
    await stage.settled(run.result)
  },
  async (stage) => {
    const slow = { ...testTool({ name: 'dig', run: () => 'Found gold.' }), background: 'wait' as const }
    const steps = [callsTools('dig', { at: 'a' }), said('Digging.'), said('There is gold.')]
    await stage.rest(agentOf('digs', steps, { tools: [slow] }), 'Dig.')
  },
]

/** A process that dies as soon as a tool may run, and another one that takes over: no record says what the tool did. */
async function crashed(stage: GoldenStage): Promise<void> {
  const { ledger } = stage
  const mortal: Ledger = {
    ...ledger,
    async append(runId, expected, events, options) {
      await ledger.append(runId, expected, events, options)
      if (events.some(({ type }) => type === 'tool_started')) throw new SimulatedCrash()
      return { seq: expected.expectedSeq + events.length, epoch: expected.epoch }
    },
  }
  const send = testTool({ name: 'send', effect: 'write' })
  const agent = agentOf('crashes', [callsTools('send', { to: 'ada' })], { tools: [send] })
  const run = stage.runtime([agent], mortal).run(agent, 'Send it.')
  const crash = await stage.settled(run.result.catch((error: unknown) => error))
  if (!(crash instanceof SimulatedCrash)) throw new Error('The run did not crash.', { cause: crash })
  const later = agentOf('crashes', [said('I cannot tell.')], { tools: [send] })
  await stage.settled(stage.runtime([later]).resume(run.id).result)
}

/** Drives every golden run through the real runtime into a ledger, the same ones at every time. */
export async function recordGoldenRuns(ledger: Ledger): Promise<void> {
  const stage = new GoldenStage(ledger)
  for (const scene of scenes) await scene(stage)
}
