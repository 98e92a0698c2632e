import { createRuntime, defineAgent, memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { describeMoment } from '../src/page/worker/moment.ts'
import { RunModel } from '../src/page/worker/run-model.ts'
import { findValue, listChildren } from '../src/page/worker/values.ts'

async function record(result: string): Promise<readonly RuntimeEvent[]> {
  const ledger = memoryLedger()
  const look = testTool({ name: 'look', run: () => result })
  const model = scriptedModel([{ toolCalls: [{ name: 'look', input: { at: 'sea' } }] }, { text: 'Blue.' }])
  const agent = defineAgent({ name: 'painter', instructions: 'Look.', model, tools: [look] })
  const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Which colour?')
  await run.result
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(run.id)) events.push(event)
  return events
}

describe('a moment', () => {
  it('shows the conversation, what changed, and what comes next', async () => {
    const events = await record('Blue sea.')
    const model = new RunModel()
    model.add(events)
    const started = events.find(({ type }) => type === 'tool_started')!
    const moment = describeMoment(model, started.seq)!
    expect(moment.phase).toBe('executing')
    expect(moment.next).toMatchObject({ kind: 'wait', inFlight: [{ kind: 'tool' }] })
    expect(moment.changes).toContainEqual(
      expect.objectContaining({
        path: ['calls', '0', 'status'],
        after: expect.objectContaining({ preview: 'started' }),
      }),
    )
    expect(moment.conversation.map(({ kind }) => kind)).toEqual(['user', 'call'])
    // Of a long run they would take long, so no look has to compute them.
    const { history } = model.state!
    expect(history.store.digests).toHaveLength(history.length)
    const last = describeMoment(model, events.length)!
    expect(last.next.kind).toBe('finished')
    expect(last.conversation.map(({ kind, text }) => [kind, text.text])).toEqual([
      ['user', 'Which colour?'],
      ['call', '{\n  "at": "sea"\n}'],
      ['result', 'Blue sea.'],
      ['assistant', 'Blue.'],
    ])
  })

  it('shows what was said of the run after its end, and no longer a run', async () => {
    const events = await record('Blue sea.')
    const { seq, at, turn, runId, epoch } = events.at(-1)!
    const said = (number: number, body: object) =>
      ({
        runId,
        epoch,
        turn,
        v: 1,
        seq: seq + number,
        at: at + 3_600_000,
        type: 'feedback_given',
        ...body,
      }) as never
    const model = new RunModel()
    model.add([...events, said(1, { by: 'ada', score: 0.5 }), said(2, { by: 'bob', note: 'Too blue.' })])
    const shown = (upTo: number) =>
      describeMoment(model, upTo)!.conversation.flatMap(({ kind, name, outcome, text }) =>
        kind === 'feedback' ? [[name, outcome, text.text]] : [],
      )
    expect(shown(seq)).toEqual([])
    expect(shown(seq + 2)).toEqual([
      ['ada', 'score 0.5', ''],
      ['bob', undefined, 'Too blue.'],
    ])
    expect(describeMoment(model, seq + 2)!.next.kind).toBe('finished')
    expect(model.timeline.build()).toMatchObject({ to: at, isEnded: true })
  })

  it('is small though a result is not', async () => {
    const events = await record('x'.repeat(8_000_000))
    const model = new RunModel()
    model.add(events)
    const moment = describeMoment(model, events.length)!
    expect(JSON.stringify(moment).length).toBeLessThan(50_000)
    expect(moment.conversation.find(({ kind }) => kind === 'result')?.text.length).toBeGreaterThan(
      100_000 - 1,
    )
    const [first] = listChildren(findValue(events.at(-1), []))
    expect(first).toMatchObject({ key: 'runId' })
  })

  it('keeps what can be folded before an event that cannot', async () => {
    const events = await record('Blue sea.')
    const model = new RunModel()
    model.add([...events.slice(0, 5), { ...events[1]!, seq: 6 }, { ...events[2]!, seq: 7 }])
    expect(model.fault).toMatchObject({ seq: 6 })
    expect(model.stateAt(7)?.seq).toBe(5)
    expect(model.lastSeq).toBe(7)
  })
})
