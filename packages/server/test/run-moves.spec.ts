import { createRuntime, defineAgent, memoryLedger, type RuntimeEvent, type Ledger } from '@tallystick/core'
import { followAllChanges, caughtUp, followChanges } from '@tallystick/core/store-kit'
import type { TailedEvent } from '@tallystick/core/vocabulary'
import { createServer } from '@tallystick/server'
import { scriptedModel, testTool, type ScriptedStep, manualClock, sampleRunId } from '@tallystick/testkit'
import { NEVER, Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { readChunks, streamChunks } from '../src/stream/follow.ts'
import { RunMoves } from '../src/stream/run-moves.ts'
import { SharedReads } from '../src/stream/shared-reads.ts'
import { framesOf, openOffice } from './kit/office.ts'

/** The events of a run whose model plays these steps. */
async function eventsOf(steps: readonly ScriptedStep[]): Promise<readonly RuntimeEvent[]> {
  const tools = [testTool({ name: 'look' })]
  const agent = defineAgent({ name: 'clerk', instructions: 'Answer.', model: scriptedModel(steps), tools })
  const ledger = memoryLedger()
  const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Well?').result
  return await Array.fromAsync(ledger.read(runId))
}

/** The types of the moves that these events give, each in a row once. */
function typesOf(moves: RunMoves, events: readonly RuntimeEvent[]): readonly string[] {
  const types = events.flatMap((event) => moves.next(event).map(({ type }) => type))
  return types.filter((type, index) => type !== types[index - 1])
}

const look = { text: 'I look.', toolCalls: [{ name: 'look', input: {} }] }
const failing = { fail: 'overloaded', retryAfterMs: 1 } as const

describe('the moves of a run', () => {
  it('take back what an attempt has shown, and nothing where it has shown nothing', async () => {
    const first = ['run_started', 'input_taken', 'step_started', 'part_started', 'part_added', 'part_ended']
    const call = [
      'call_started',
      'call_input_added',
      'call_requested',
      'call_ended',
      'step_ended',
      'step_started',
    ]
    const answer = ['part_started', 'part_added', 'part_ended', 'step_ended', 'run_finished']
    const silent = await eventsOf([look, failing, { text: 'Found.' }])
    expect(typesOf(new RunMoves(), silent)).toEqual([...first, ...call, ...answer])
    const shown = await eventsOf([look, { text: 'Half', ...failing }, { text: 'Found.' }])
    const withdrawn = ['part_started', 'part_added', 'part_ended', 'step_withdrawn']
    expect(typesOf(new RunMoves(), shown)).toEqual([...first, ...call, ...withdrawn, ...answer])
  })

  it('begin a step again in a stream that continues, where the step has shown nothing yet', async () => {
    const events = await eventsOf([look, { text: 'Found.' }])
    const reopened = (type: RuntimeEvent['type'], turn: number): readonly string[] => {
      const moves = new RunMoves()
      typesOf(
        moves,
        events.slice(0, events.findIndex((event) => event.type === type && event.turn === turn) + 1),
      )
      return moves.reopen().map((move) => move.type)
    }
    expect(reopened('run_started', 0)).toEqual(['run_reopened'])
    expect(reopened('model_call_started', 1)).toEqual(['run_reopened', 'step_started'])
    expect(reopened('assistant_text_delta', 1)).toEqual(['run_reopened'])
    expect(reopened('tool_result', 1)).toEqual(['run_reopened'])
    expect(reopened('model_call_started', 2)).toEqual(['run_reopened', 'step_started'])
    expect(reopened('assistant_text_delta', 2)).toEqual(['run_reopened'])
    expect(reopened('run_finished', 2)).toEqual(['run_reopened'])
    expect(new RunMoves().reopen()).toEqual([])
  })
})

/** The frames of a reader that came before the reply with a text. */
async function framesWith({ liveText }: { readonly liveText: boolean }): Promise<readonly string[]> {
  const gate = Promise.withResolvers<void>()
  const look = testTool({
    name: 'look',
    run: async () => {
      await gate.promise
      return 'nine'
    },
  })
  const model = scriptedModel([
    { toolCalls: [{ name: 'look', input: {} }] },
    { text: 'Nine in the morning.' },
  ])
  const agent = defineAgent({ name: 'clock', instructions: 'Tell.', model, tools: [look] })
  const runtime = createRuntime({
    ledger: memoryLedger(),
    agents: [agent],
    liveText: true,
    recording: { textDeltas: false },
  })
  const server = createServer({
    runtime,
    agents: [agent],
    liveText,
    authorize: () => ({ name: 'ada', sees: 'everything' }),
  })
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ agent: 'clock', input: 'What time is it?' })
  const started = await server.fetch(new Request('http://localhost/runs', { method: 'POST', headers, body }))
  const { runId } = (await started.json()) as { runId: string }
  const events = await server.fetch(
    new Request(`http://localhost/runs/${runId}/events`, { headers: { accept: 'text/event-stream' } }),
  )
  const reading = events.text()
  gate.resolve()
  return (await reading).trimEnd().split('\n\n')
}

const pieceIn = (frame: string): { readonly text: string } =>
  JSON.parse(frame.replace(/^event: live_text\ndata: /, '')) as { text: string }

describe('text before it is on record', () => {
  it('comes as events of its own name without an id, in front of the message', async () => {
    const frames = await framesWith({ liveText: true })
    const live = frames.filter((frame) => frame.startsWith('event: live_text\n'))
    expect(live.map((frame) => pieceIn(frame).text).join('')).toBe('Nine in the morning.')
    expect(pieceIn(live[0] ?? '')).toMatchObject({ turn: 2, attempt: 1, part: 0 })
    expect(live.join('\n')).not.toMatch(/^id:/m)
    const message = frames.findLastIndex((frame) => frame.includes('"type":"assistant_message_finished"'))
    expect(frames.lastIndexOf(live.at(-1) ?? '')).toBeLessThan(message)
    expect(frames.at(-1)).toContain('"type":"run_finished"')
  })

  it('is not sent unless the server is told to', async () => {
    const frames = await framesWith({ liveText: false })
    expect(frames.join('\n')).not.toContain('live_text')
    expect(frames.at(-1)).toContain('"type":"run_finished"')
  })
})

describe('a stream whose reader leaves', () => {
  it('reports that its ledger could not end the read', async () => {
    async function* tail(): AsyncGenerator<TailedEvent> {
      try {
        for (;;) yield { cursor: 'c' } as TailedEvent
      } finally {
        await Promise.reject(new Error('the cursor could not be closed'))
      }
    }
    const reported = Promise.withResolvers<unknown>()
    const host = {
      clock: manualClock(),
      heartbeatMs: 1_000,
      stopping: new AbortController().signal,
      report: (error: unknown, what: string) => reported.resolve([what, error]),
    }
    const changes = followAllChanges({ tail, changes: () => NEVER } as unknown as Ledger)
    const followed = { changes, format: () => 'x'.repeat(70_000), isLast: () => false }
    const reader = streamChunks((signal) => readChunks(followed, host, signal), host).getReader()
    await reader.read()
    await reader.cancel()
    expect(await reported.promise).toEqual(['A stream of events did not end', expect.any(Error)])
  })
})

/** A ledger that counts the reads of its runs. */
function countingLedger(): { readonly ledger: Ledger; readonly reads: () => number } {
  const ledger = memoryLedger()
  let reads = 0
  const read: Ledger['read'] = (...range) => {
    reads++
    return ledger.read(...range)
  }
  return { ledger: { ...ledger, read }, reads: () => reads }
}

async function* noEvents(): AsyncGenerator<RuntimeEvent> {
  yield* []
}

describe('the readers of one run', () => {
  it('share their looks at the ledger, and each gets every event once', async () => {
    const steps = Promise.withResolvers<void>()
    let calls = 0
    const step = testTool({ name: 'step', run: () => `${++calls}` })
    const model = scriptedModel([
      { text: 'I wait.', toolCalls: [{ name: 'step', input: {} }], until: steps.promise },
      ...Array.from({ length: 20 }, () => ({ toolCalls: [{ name: 'step', input: {} }] })),
      { text: 'Done.' },
    ])
    const agent = defineAgent({ name: 'walker', instructions: 'Walk.', model, tools: [step] })
    const { ledger, reads } = countingLedger()
    const office = await openOffice({ ledger, agents: [agent] })
    const runId = await office.start('boss')
    const readers = 30
    const responses = await Promise.all(
      Array.from({ length: readers }, () =>
        office.send(`/runs/${runId}/events`, 'boss', undefined, { accept: 'text/event-stream' }),
      ),
    )
    let opened = 0
    const following = responses.map(async (response) => {
      const ids: number[] = []
      for await (const { id } of framesOf(response)) {
        if (ids.push(Number(id)) === 1 && ++opened === readers) steps.resolve()
      }
      return ids
    })
    const before = reads()
    const all = await Promise.all(following)
    const [first = []] = all
    expect(first).toEqual(first.map((_, index) => index + 1))
    expect(first.length).toBeGreaterThan(100)
    for (const ids of all) expect(ids).toEqual(first)
    expect(reads() - before).toBeLessThan(readers)
  })

  it('all get the error of a failed look, and the next look is a new one', async () => {
    const [hints, runId] = [new Subject<void>(), sampleRunId(1)]
    let isBroken = false
    let looks = 0
    const reads = new SharedReads({
      changes: () => hints,
      read: () => {
        looks++
        if (isBroken) throw new Error('no disk')
        return noEvents()
      },
    })
    const open = async () => {
      const changes = followChanges(reads.forReader(), runId, { after: 0 })
      expect((await changes.next()).value).toBe(caughtUp)
      return changes
    }
    const [one, other] = [await open(), await open()]
    expect(looks).toBe(2)
    isBroken = true
    const both = Promise.allSettled([one.next(), other.next()])
    hints.next()
    expect(await both).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }])
    expect(looks).toBe(3)
    isBroken = false
    const again = await open()
    expect(looks).toBe(4)
    const next = again.next()
    hints.next()
    expect((await next).value).toBe(caughtUp)
    expect(looks).toBe(5)
    await again.return()
    expect(hints.observed).toBe(false)
  })
})
