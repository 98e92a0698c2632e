import { describe, expect, it } from 'vitest'
import { ConfigurationError, type RunState, type RuntimeEvent } from '@tallystick/core'
import { buildForkedEvents, requireForkable } from '@tallystick/core/internal'
import { sampleRunId, scriptedModel, seededRandom, testTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage } from './stage.ts'

const fork = sampleRunId(9)

/** A run that calls a tool with every kind of JSON in its input. */
async function recorded() {
  const input = { nothing: null, yes: true, count: 3, list: [null, 'a', [{}]] }
  const steps = [
    { text: 'Looking.', toolCalls: [{ name: 'look', input }] },
    { text: 'Looking again.', toolCalls: [{ name: 'look', input: {} }] },
    { text: 'Done.' },
  ]
  const set = stage({
    steps,
    tools: [testTool({ name: 'look', run: () => 'seen' })],
    random: seededRandom(1),
  })
  const { runId } = await set.play('Look.')
  return { runId, input, events: await set.eventsOf(runId) }
}

describe('the events of a fork', () => {
  it('say what those of the run say, with the ids and digests of the fork, and keep every law', async () => {
    const { runId, input, events } = await recorded()
    const shared = events.slice(0, -1)
    const forked = checkedRun(buildForkedEvents(shared, { runId: fork, sessionId: 's', sessionPlace: 4 }))
    const parent = { runId, seq: shared.length, relation: 'fork', writes: 'ask' }
    expect(forked[0]).toEqual({ ...events[0], runId: fork, parent, sessionId: 's', sessionPlace: 4 })
    expect(ofType(forked, 'tool_request_ready')[0]?.input).toEqual(input)
    const [started] = ofType(forked, 'tool_started')
    expect(started?.idempotencyKey.startsWith(fork)).toBe(true)
    expect(started).not.toHaveProperty('child')
    const hex = (id: string): string => id.replaceAll('-', '')
    const renamed = JSON.parse(
      JSON.stringify(shared.slice(1)).replaceAll(hex(runId), hex(fork)).replaceAll(runId, fork),
    ) as typeof shared
    const said = (run: typeof shared): readonly object[] =>
      run.map((event) => (event.type === 'model_call_started' ? { ...event, requestDigest: '' } : event))
    expect(said(forked.slice(1))).toEqual(said(renamed))
  })

  it('have a digest of their own for a call that summed up, where the summed up messages hold ids', async () => {
    const long = 'word '.repeat(400)
    const paused = { text: long, stopReason: 'paused' } as const
    const set = stage({
      steps: [{ toolCalls: [{ name: 'look', input: {} }] }, paused, paused, { text: 'Done.' }],
      tools: [testTool({ name: 'look', run: ({ toolCallId }) => toolCallId })],
      compaction: { maxContextTokens: 1_000, keepMessages: 1, summarize: scriptedModel([{ text: 'Seen.' }]) },
    })
    const { runId } = await set.play('Look.')
    const events = await set.eventsOf(runId)
    const forked = checkedRun(buildForkedEvents(events.slice(0, -1), { runId: fork }))
    const digestsOf = (run: typeof events): readonly string[] =>
      ofType(run, 'compaction_started').map(({ requestDigest }) => requestDigest)
    expect(digestsOf(forked)).toHaveLength(1)
    expect(digestsOf(forked)).not.toEqual(digestsOf(events))
    const plain = ({ type, seq }: RuntimeEvent): readonly unknown[] => [type, seq]
    expect(forked.map(plain)).toEqual(events.slice(0, -1).map(plain))
  })

  it('are of the first epoch, of no inbox, and of its own child runs, whatever those of the run are of', async () => {
    const { runId, events } = await recorded()
    const upTo = events.find(({ type }) => type === 'tool_started')?.seq ?? 0
    const shared = events.slice(0, upTo).map((event): RuntimeEvent => {
      const of = { epoch: 3, inboxKey: 'k' }
      if (event.type === 'tool_started') return { ...event, ...of, child: runId }
      if (event.type !== 'tool_requests_collected') return { ...event, ...of }
      return { ...event, ...of, calls: event.calls.map((call) => ({ ...call, recorded: call.toolCallId })) }
    })
    const forked = buildForkedEvents(shared, { runId: fork, writes: 'run' })
    expect(forked.map(({ epoch }) => epoch)).toEqual(shared.map(() => 1))
    expect(forked.filter((event) => 'inboxKey' in event)).toEqual([])
    expect(ofType(forked, 'run_started')[0]?.parent).toMatchObject({ writes: 'run', seq: upTo })
    expect(ofType(forked, 'tool_requests_collected').map(({ calls }) => calls)).toEqual([
      [expect.not.objectContaining({ recorded: expect.anything() as unknown })],
    ])
    const children = ofType(forked, 'tool_started').map(({ child }) => child)
    expect(children).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)])
    expect(children).not.toContain(runId)
  })
})

describe('a place in a run', () => {
  const stateAt = (change: object): RunState =>
    ({ phase: 'streaming', seq: 5, history: [{}], calls: [], ...change }) as unknown as RunState
  const child = sampleRunId(2)
  const executing = (...calls: readonly object[]): RunState => stateAt({ phase: 'executing', calls })

  it.each<readonly [string, RunState | undefined, RegExp]>([
    ['of no event', undefined, /first input \(2\) to its last/],
    ['after its last event', stateAt({ seq: 4 }), /first input \(2\) to its last/],
    ['before its first input', stateAt({ history: [] }), /first input \(2\) to its last/],
    ['where it ends', stateAt({ phase: 'done' }), /the run ends there\. Name an earlier event/],
    [
      'where it awaits a child run',
      executing({ status: 'running' }, { status: 'deferred', child }),
      /it awaits a child run there/,
    ],
  ])('%s is refused for a fork, with the reason', (_name, state, reason) => {
    const act = (): unknown => requireForkable(state, 'r', 5)
    expect(act).toThrow(ConfigurationError)
    expect(act).toThrow(/^Run r cannot be forked at its event 5: /)
    expect(act).toThrow(reason)
  })

  it.each<readonly [string, RunState]>([
    ['after one message', stateAt({})],
    ['where tools run', executing({ status: 'running' })],
    ['where a child run is under way', executing({ status: 'running', child })],
    ['where a call is deferred to no child run', executing({ status: 'deferred' })],
    ['after a child run', stateAt({ calls: [{ status: 'deferred', child }] })],
  ])('%s is one to fork at', (_name, state) => {
    expect(requireForkable(state, 'r', 5)).toBe(state)
  })
})
